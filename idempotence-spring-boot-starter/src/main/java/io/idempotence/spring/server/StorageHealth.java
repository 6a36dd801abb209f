package io.idempotence.spring.server;

import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The health of the storage. A check {@linkplain StorageProbe probes} it: a read-only replica and a user without the rights are down. */
final class StorageHealth {
    private final ServerStart start;

    StorageHealth(ServerStart start) {
        this.start = start;
    }

    /**
     * The result of a check.
     *
     * @param isUp whether the storage can be used; null if the application does not use any
     * @param details the kind of storage, and why it cannot be used
     */
    record HealthResult(@Nullable Boolean isUp, Map<String, Object> details) {}

    HealthResult check() {
        ServerParts parts = start.parts();
        if (parts == null) {
            return new HealthResult(null, Map.of("storage", "not used"));
        }
        Map<String, Object> details = new LinkedHashMap<>();
        details.put("storage", parts.storage().kind());
        try {
            new StorageProbe(parts).run();
            return new HealthResult(true, details);
        } catch (RuntimeException e) {
            details.put("reason", String.valueOf(e.getMessage()));
            return new HealthResult(false, details);
        }
    }
}
