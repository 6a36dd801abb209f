package io.idempotence.server.jdbc;

import com.zaxxer.hikari.HikariDataSource;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorageContract;
import java.time.Duration;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;

/** A pool without auto-commit whose connections are serializable. */
@Tag("all")
class JdbcPostgreSqlSerializableTest extends IdempotenceStorageContract {
    private static HikariDataSource pool;

    @BeforeAll
    static void open() {
        pool = Databases.POSTGRESQL.newPool(config -> {
            config.setAutoCommit(false);
            config.setTransactionIsolation("TRANSACTION_SERIALIZABLE");
        });
    }

    @AfterAll
    static void shut() {
        pool.close();
    }

    @Override
    protected IdempotenceStorage createStorage() {
        return JdbcIdempotenceStorage.builder(pool).createIfMissing().build();
    }

    @Override
    protected void letPass(Duration duration) {
        Databases.POSTGRESQL.letPass(duration);
    }
}
