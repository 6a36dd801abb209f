package io.idempotence.server.jdbc;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.SQLFeatureNotSupportedException;
import java.sql.Statement;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A connection of the application's {@code DataSource}, set up for the storage's statements. Closing restores its state and returns it. One
 * that cannot be restored is aborted, so that the application never gets the storage's settings.
 */
final class BorrowedConnection implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(JdbcIdempotenceStorage.class);
    private static final int UNCHANGED = -1;

    private final Connection connection;
    private boolean manualCommit;
    private int networkTimeout = UNCHANGED;
    private QueryTimeout queryTimeout = QueryTimeout.UNCHANGED;

    BorrowedConnection(Connection connection) {
        this.connection = connection;
    }

    Connection connection() {
        return connection;
    }

    /** Sets the network timeout. A query timeout needs a server that responds; only this one detects a silent network. */
    void limitNetwork(int millis) throws SQLException {
        try {
            int former = connection.getNetworkTimeout();
            if (former == 0 || former > millis) {
                connection.setNetworkTimeout(Runnable::run, millis);
                networkTimeout = former;
            }
        } catch (SQLFeatureNotSupportedException | AbstractMethodError e) {
            LOG.debug("the driver has no network timeout", e);
        }
    }

    void commitEachStatement() throws SQLException {
        if (!connection.getAutoCommit()) {
            connection.setAutoCommit(true);
            manualCommit = true;
        }
    }

    void limitQueries(QueryTimeout limited) {
        queryTimeout = limited;
    }

    @Override
    public void close() {
        try (connection) {
            if (!connection.isClosed()) {
                restore();
            }
        } catch (SQLException | RuntimeException e) {
            LOG.debug("a connection failed while it was returned to the pool", e);
        }
    }

    /** Restores the settings. The network timeout comes last, because it bounds the statements that restore the others. */
    private void restore() throws SQLException {
        try {
            try {
                try {
                    queryTimeout.close();
                } finally {
                    if (manualCommit) {
                        connection.setAutoCommit(false);
                    }
                }
            } finally {
                if (networkTimeout != UNCHANGED) {
                    connection.setNetworkTimeout(Runnable::run, networkTimeout);
                }
            }
        } catch (SQLException | RuntimeException | Error e) {
            connection.abort(Runnable::run);
            throw e;
        }
    }

    /**
     * The query timeout of an H2 session, until it is closed. H2 applies {@link Statement#setQueryTimeout} to all later statements of the
     * connection, so the timeout is set and restored by SQL, to the millisecond.
     */
    static final class QueryTimeout implements AutoCloseable {
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
}
