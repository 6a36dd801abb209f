package io.idempotence.server.jdbc;

import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorageContract;
import java.time.Duration;

class JdbcPostgreSqlStorageTest extends IdempotenceStorageContract {
    @Override
    protected IdempotenceStorage createStorage() {
        return Databases.POSTGRESQL.storage().createIfMissing().build();
    }

    @Override
    protected void letPass(Duration duration) {
        Databases.POSTGRESQL.letPass(duration);
    }
}
