package io.idempotence.server.jdbc;

import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorageContract;
import java.time.Duration;

class JdbcMariaDbStorageTest extends IdempotenceStorageContract {
    @Override
    protected IdempotenceStorage createStorage() {
        return Databases.MARIADB.storage().createIfMissing().build();
    }

    @Override
    protected void letPass(Duration duration) {
        Databases.MARIADB.letPass(duration);
    }
}
