package io.idempotence.server.jdbc;

import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.StorageProperties;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import net.jqwik.api.lifecycle.BeforeContainer;

class JdbcInTransactionPropertiesTest extends StorageProperties {
    private static JdbcIdempotenceStorage storage;

    @BeforeContainer
    static void start() {
        storage =
                Databases.POSTGRESQL.storage().createIfMissing().inTransaction().build();
    }

    @Override
    protected IdempotenceStorage storage() {
        return storage;
    }

    @Override
    protected void letPass(Duration duration) {
        Databases.POSTGRESQL.letPass(duration);
    }

    @Override
    protected BusinessTransaction businessTransaction() {
        return JdbcInTransactionPropertiesTest::commit;
    }

    private static boolean commit(Claim claim) {
        try (Connection business = Databases.POSTGRESQL.pool().getConnection()) {
            business.setAutoCommit(false);
            storage.markApplied(business, claim);
            business.commit();
            return true;
        } catch (ExecutionOvertakenException e) {
            return false;
        } catch (SQLException e) {
            throw new IllegalStateException(e);
        }
    }
}
