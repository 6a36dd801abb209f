package io.idempotence.server.jdbc;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.StorageKey;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;

/** The effects of executions, in a table of the business: each is one row, under the key of its ID. */
final class Effects {
    private Effects() {}

    static void createTable(Databases databases) {
        databases.execute("CREATE TABLE IF NOT EXISTS effect (id VARCHAR(128) NOT NULL)");
    }

    static JdbcIdempotenceStorage storage(Databases databases) {
        createTable(databases);
        return databases.storage().createIfMissing().inTransaction().build();
    }

    static Connection begin(Databases databases) throws SQLException {
        Connection connection = databases.pool().getConnection();
        connection.setAutoCommit(false);
        return connection;
    }

    static void takeEffect(Connection connection, StorageKey key) throws SQLException {
        try (PreparedStatement insert = connection.prepareStatement("INSERT INTO effect VALUES (?)")) {
            insert.setString(1, key.value());
            insert.executeUpdate();
        }
    }

    static void run(Databases databases, JdbcIdempotenceStorage storage, Claim claim) throws SQLException {
        try (Connection business = begin(databases)) {
            try {
                takeEffect(business, claim.key());
                storage.markApplied(business, claim);
                business.commit();
            } finally {
                business.rollback();
            }
        }
    }

    static long effects(Databases databases, StorageKey key) {
        return databases.number("SELECT COUNT(*) FROM effect WHERE id = '" + key.value() + "'");
    }

    static void assertAppliedWithoutResult(ClaimResult result) {
        assertThat(result)
                .isInstanceOfSatisfying(
                        ClaimResult.Completed.class,
                        completed -> assertThat(completed.result()).isEqualTo(ClaimResult.noResult()));
    }
}
