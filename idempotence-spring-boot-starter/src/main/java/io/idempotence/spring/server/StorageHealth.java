package io.idempotence.spring.server;

import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The health of the storage. Until it has worked once, a check {@linkplain StorageProbe probes} it: a user without the rights is down. Then a
 * check is one write that needs no memory: a read-only replica is down, but a full storage, which still replays, is not.
 */
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
            StorageProbe probe = new StorageProbe(parts);
            if (start.hasWorked()) {
                probe.write();
            } else {
                probe.run();
            }
            return new HealthResult(true, details);
        } catch (RuntimeException e) {
            details.put("reason", String.valueOf(e.getMessage()));
            return new HealthResult(false, details);
        }
    }
}
