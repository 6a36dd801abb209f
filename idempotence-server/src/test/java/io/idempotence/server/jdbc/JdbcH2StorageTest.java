package io.idempotence.server.jdbc;

import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorageContract;
import java.time.Duration;

class JdbcH2StorageTest extends IdempotenceStorageContract {
    @Override
    protected IdempotenceStorage createStorage() {
        return JdbcIdempotenceStorage.builder(Databases.H2.pool())
                .createIfMissing()
                .build();
    }

    @Override
    protected void letPass(Duration duration) {
        Databases.H2.letPass(duration);
    }
}
