package io.idempotence.client.feign;

import feign.Target;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.RetryBudget;
import io.idempotence.client.retry.LogicalCall;
import io.idempotence.client.retry.Retries;

/** One client: its name, its settings, its retries. */
final class FeignTarget {
    private final Target<?> target;
    private final IdempotenceClientConfig config;
    private final RetryBudget budget;
    private final Retries retries;

    FeignTarget(Target<?> target, IdempotenceClientConfig common) {
        this.target = target;
        this.config = common.forClient(target.name());
        this.budget = common.budget(target.name());
        this.retries = new Retries(target.name(), config);
    }

    Class<?> type() {
        return target.type();
    }

    String name() {
        return target.name();
    }

    IdempotenceClientConfig config() {
        return config;
    }

    Retries retries() {
        return retries;
    }

    LogicalCall open(ClientMethod method) {
        return new LogicalCall(name(), method.configKey(), config, budget);
    }
}
