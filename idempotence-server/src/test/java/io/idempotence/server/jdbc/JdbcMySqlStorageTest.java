package io.idempotence.server.jdbc;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorageContract;
import java.time.Duration;
import org.junit.jupiter.api.BeforeAll;

class JdbcMySqlStorageTest extends IdempotenceStorageContract {
    @BeforeAll
    static void serverRunsHere() {
        assumeTrue(MySqlServer.isPossible(), "MySQL's server needs libaio.so.1");
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
