package io.idempotence.server.jdbc;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import org.jspecify.annotations.Nullable;

/**
 * The query timeout of an H2 session, until it is closed. H2 applies {@link Statement#setQueryTimeout} to all later statements of the
 * connection, so the timeout is set and restored by SQL, to the millisecond.
 */
final class QueryTimeout implements AutoCloseable {
    /** The timeout of databases that have one per statement: it changes nothing. */
    static final QueryTimeout UNCHANGED = new QueryTimeout(null, 0);

    private final @Nullable Connection connection;
    private final long formerMillis;

    private QueryTimeout(@Nullable Connection connection, long formerMillis) {
        this.connection = connection;
        this.formerMillis = formerMillis;
    }

    static QueryTimeout set(Connection connection, long millis) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            long former;
            try (ResultSet rows = statement.executeQuery(
                    "SELECT SETTING_VALUE FROM INFORMATION_SCHEMA.SETTINGS WHERE SETTING_NAME = 'QUERY_TIMEOUT'")) {
                former = rows.next() ? rows.getLong(1) : 0;
            }
            statement.execute("SET QUERY_TIMEOUT " + millis);
            return new QueryTimeout(connection, former);
        }
    }

    @Override
    public void close() throws SQLException {
        if (connection != null) {
            try (Statement statement = connection.createStatement()) {
                statement.execute("SET QUERY_TIMEOUT " + formerMillis);
            }
        }
    }
}
