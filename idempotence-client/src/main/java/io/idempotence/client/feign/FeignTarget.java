package io.idempotence.client.feign;

import feign.Target;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.RetryBudget;
import java.lang.reflect.Method;

/** One client: its name, its settings, its budget. */
final class FeignTarget {
    private final Target<?> target;
    private final IdempotenceClientConfig common;
    private final RetryBudget budget;

    FeignTarget(Target<?> target, IdempotenceClientConfig common) {
        this.target = target;
        this.common = common;
        this.budget = common.budget(target.name());
    }

    Class<?> type() {
        return target.type();
    }

    String name() {
        return target.name();
    }

    RetryBudget budget() {
        return budget;
    }

    IdempotenceClientConfig configOf(Method method) {
        return common.forMethod(target.name(), method.getName());
    }
}
