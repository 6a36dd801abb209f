package io.idempotence.spring.server;

import io.idempotence.IdempotenceId;
import io.idempotence.server.storage.StorageKey;
import java.security.SecureRandom;
import org.jspecify.annotations.Nullable;

/** The health of the storage. A check deletes a record that does not exist: that is a write, which a read-only replica refuses. */
final class StorageHealth {
    private final SecureRandom random = new SecureRandom();
    private final ServerParts parts;

    StorageHealth(ServerParts parts) {
        this.parts = parts;
    }

    String kind() {
        return parts.storage().kind();
    }

    /** Returns why the storage cannot be used, or null if it can. */
    @Nullable
    String fault() {
        IdempotenceId id = IdempotenceId.of(Long.toHexString(random.nextLong()));
        try {
            parts.storage().storage().delete(StorageKey.of(parts.namespace().name(), "", "probe", id));
            return null;
        } catch (RuntimeException e) {
            return String.valueOf(e.getMessage());
        }
    }
}
