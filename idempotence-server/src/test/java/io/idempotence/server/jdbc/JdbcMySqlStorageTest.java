package io.idempotence.server.jdbc;

import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorageContract;
import java.time.Duration;
import org.junit.jupiter.api.BeforeAll;

class JdbcMySqlStorageTest extends IdempotenceStorageContract {
    @BeforeAll
    static void serverRunsHere() {
        Databases.MYSQL.url();
    }

    @Override
    protected IdempotenceStorage createStorage() {
        return Databases.MYSQL.storage().createIfMissing().build();
    }

    @Override
    protected void letPass(Duration duration) {
        Databases.MYSQL.letPass(duration);
    }
}
