package io.idempotence.server.jdbc;

import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorageContract;
import java.time.Duration;

class JdbcPostgreSqlStorageTest extends IdempotenceStorageContract {
    @Override
    protected IdempotenceStorage createStorage() {
        return JdbcIdempotenceStorage.builder(Databases.POSTGRESQL.pool())
                .createIfMissing()
                .build();
    }

    @Override
    protected void letPass(Duration duration) {
        Databases.POSTGRESQL.letPass(duration);
    }
}
