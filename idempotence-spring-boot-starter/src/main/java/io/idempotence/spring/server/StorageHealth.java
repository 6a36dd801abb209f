package io.idempotence.spring.server;

import io.idempotence.IdempotenceId;
import io.idempotence.server.storage.StorageKey;
import java.security.SecureRandom;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The health of the storage. A check deletes a record that does not exist: that is a write, which a read-only replica refuses. */
final class StorageHealth {
    private final SecureRandom random = new SecureRandom();
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
        IdempotenceId id = IdempotenceId.of(Long.toHexString(random.nextLong()));
        try {
            parts.storage().storage().delete(StorageKey.of(parts.namespace().name(), "", "probe", id));
            return new HealthResult(true, details);
        } catch (RuntimeException e) {
            details.put("reason", String.valueOf(e.getMessage()));
            return new HealthResult(false, details);
        }
    }
}
