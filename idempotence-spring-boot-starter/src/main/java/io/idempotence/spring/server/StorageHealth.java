package io.idempotence.spring.server;

import io.idempotence.IdempotenceId;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.StorageKey;
import java.security.SecureRandom;
import org.jspecify.annotations.Nullable;

/** The health of the storage. A check deletes a record that does not exist: that is a write, which a read-only replica refuses. */
final class StorageHealth {
    private final SecureRandom random = new SecureRandom();
    private final IdempotenceStorage storage;
    private final String kind;
    private final String namespace;

    StorageHealth(IdempotenceStorage storage, String kind, String namespace) {
        this.storage = storage;
        this.kind = kind;
        this.namespace = namespace;
    }

    String kind() {
        return kind;
    }

    /** Returns why the storage cannot be used, or null if it can. */
    @Nullable
    String fault() {
        try {
            storage.delete(
                    StorageKey.of(namespace, "", "probe", IdempotenceId.of(Long.toHexString(random.nextLong()))));
            return null;
        } catch (RuntimeException e) {
            return String.valueOf(e.getMessage());
        }
    }
}
