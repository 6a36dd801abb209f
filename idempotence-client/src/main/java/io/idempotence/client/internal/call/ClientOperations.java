package io.idempotence.client.internal.call;

import io.idempotence.client.IdempotenceClientConfig;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

/** The operations of a client half that learns their names from its requests. Thread-safe. */
public final class ClientOperations {
    private static final int MOST = 1000;

    private final IdempotenceClientConfig config;
    private final Logger log;
    private final ConcurrentMap<OperationKey, ClientOperation> operations = new ConcurrentHashMap<>();

    private record OperationKey(
            String client, String method, @Nullable Boolean annotated) {}

    /** @param log the logger of the HTTP client library's half */
    public ClientOperations(IdempotenceClientConfig config, Logger log) {
        this.config = config;
        this.log = log;
    }

    /** @param annotated the value of {@code @Idempotent}, or null if there is none */
    public ClientOperation of(String client, String method, @Nullable Boolean annotated) {
        OperationKey key = new OperationKey(client, method, annotated);
        ClientOperation known = operations.get(key);
        if (known != null) {
            return known;
        }
        if (operations.size() >= MOST) {
            // This client calls very many hosts.
            // Operations are created again when needed, and only a warning in their state is lost.
            operations.clear();
        }
        return operations.computeIfAbsent(
                key, absent -> new ClientOperation(client, method, method, config, annotated, log));
    }
}
