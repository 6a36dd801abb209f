package io.idempotence.client.internal.call;

import io.github.resilience4j.retry.Retry;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.RetryBudget;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

/** One operation of a server as a client calls it: its names, settings, budget, retry and logger. Thread-safe. */
public final class ClientOperation {
    private final String client;
    private final String method;
    private final String name;
    private final IdempotenceClientConfig config;
    private final RetryBudget budget;
    private final Retries retries;
    private final @Nullable Boolean annotated;
    private final RepeatWarning repeats;
    private final Logger log;

    /**
     * @param method the name for listeners
     * @param name the name in settings and retries
     * @param common the settings of all clients
     * @param annotated the value of {@code @Idempotent}, or null if there is none
     * @param log the logger of the HTTP client library's half
     */
    public ClientOperation(
            String client,
            String method,
            String name,
            IdempotenceClientConfig common,
            @Nullable Boolean annotated,
            Logger log) {
        this.client = client;
        this.method = method;
        this.name = name;
        this.config = common.forMethod(client, name);
        this.budget = common.budget(client);
        this.retries = new Retries(client, config);
        this.annotated = annotated;
        this.repeats = new RepeatWarning(log, client, method);
        this.log = log;
    }

    public String client() {
        return client;
    }

    public String method() {
        return method;
    }

    public IdempotenceClientConfig config() {
        return config;
    }

    RetryBudget budget() {
        return budget;
    }

    /** The retry that is in the registry now. */
    public Retry retry() {
        return retries.of(name);
    }

    RepeatWarning repeats() {
        return repeats;
    }

    /** The logger of the HTTP client library's half, the only one that operators see. */
    Logger log() {
        return log;
    }

    /** The value of {@code @Idempotent}, or null if there is none. */
    @Nullable
    Boolean annotated() {
        return annotated;
    }
}
