package io.idempotence.server.jdbc;

import io.idempotence.server.jdbc.BorrowedConnection.QueryTimeout;
import io.idempotence.server.jdbc.JdbcErrors.NotConnectedException;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/** The access to the database. It borrows connections, returns them in their original state, and translates failures. */
final class Database {
    static final int TRIES = 12;
    static final String GIVE_THE_POOL =
            "Records must survive the rollback of a business transaction: give the storage the connection pool itself";

    private final DataSource dataSource;
    private final int networkTimeoutMillis;
    private final int timeoutSeconds;
    private volatile @Nullable Dialect dialect;
    /** Whether any connection came with auto-commit on. A pool lends all of them alike. */
    private volatile boolean lendsAutoCommit;

    Database(DataSource dataSource, Duration statementTimeout) {
        this.dataSource = dataSource;
        this.timeoutSeconds = (int) Math.max(1, statementTimeout.plusMillis(999).toSeconds());
        // Time for the driver to cancel a statement, which some do over a second connection.
        this.networkTimeoutMillis = timeoutSeconds * 1_000 + 2_000;
    }

    DataSource dataSource() {
        return dataSource;
    }

    /** Statements on one connection. Each is a transaction of its own, and all of them may be repeated. */
    @FunctionalInterface
    interface SqlWork<T> {
        T on(Session session) throws SQLException;
    }

    /** Runs statements on the caller's connection, in the caller's transaction. */
    <T> T on(Connection connection, Dialect known, SqlWork<T> work) throws SQLException {
        QueryTimeout limit = limitQueries(connection, known);
        try (limit) {
            return work.on(new Session(connection, known, timeoutSeconds));
        }
    }

    private QueryTimeout limitQueries(Connection connection, Dialect known) throws SQLException {
        return known == Dialect.H2 ? QueryTimeout.set(connection, timeoutSeconds * 1_000L) : QueryTimeout.UNCHANGED;
    }

    int timeoutSeconds() {
        return timeoutSeconds;
    }

    /** Runs statements and retries after a conflict, for no longer than one statement may take. */
    <T> T run(String action, SqlWork<T> work) {
        long start = System.nanoTime();
        for (int tried = 1; ; tried++) {
            try {
                return once(work);
            } catch (NotConnectedException e) {
                throw tried == 1 ? JdbcErrors.notSent(action, e) : JdbcErrors.unavailable(action, e);
            } catch (SQLException e) {
                boolean late = System.nanoTime() - start > TimeUnit.SECONDS.toNanos(timeoutSeconds);
                if (tried == TRIES || late || !JdbcErrors.isConflict(e)) {
                    throw JdbcErrors.unavailable(action, e);
                }
                pause(tried);
            }
        }
    }

    /**
     * Waits before a retry. The first retry is immediate. Later ones wait a random time, so that the transactions in conflict separate.
     */
    private static void pause(int tried) {
        if (tried > 1) {
            long longest = TimeUnit.MILLISECONDS.toNanos(1L << Math.min(tried, 5));
            LockSupport.parkNanos(ThreadLocalRandom.current().nextLong(longest));
        }
    }

    /**
     * Runs statements without a retry and without a translation of failures.
     *
     * @throws NotConnectedException if nothing was sent
     */
    <T> T once(SqlWork<T> work) throws SQLException {
        Connection connection;
        try {
            connection = dataSource.getConnection();
        } catch (SQLException | RuntimeException e) {
            throw new NotConnectedException(JdbcErrors.noConnection(e), e);
        }
        try (BorrowedConnection borrowed = new BorrowedConnection(connection)) {
            return work.on(setUp(borrowed));
        }
    }

    private Session setUp(BorrowedConnection borrowed) throws NotConnectedException {
        Connection connection = borrowed.connection();
        try {
            borrowed.limitNetwork(networkTimeoutMillis);
            Dialect known = dialect;
            if (known == null) {
                known = Dialect.of(connection.getMetaData());
                dialect = known;
            }
            refuseTransactionOfOthers(connection, known);
            borrowed.commitEachStatement();
            borrowed.limitQueries(limitQueries(connection, known));
            return new Session(connection, known, timeoutSeconds);
        } catch (NotConnectedException e) {
            throw e;
        } catch (SQLException e) {
            throw new NotConnectedException("a connection could not be set up: " + JdbcErrors.reason(e), e);
        }
    }

    /** Refuses a connection with a running transaction: turning auto-commit on would commit it. */
    private void refuseTransactionOfOthers(Connection connection, Dialect known) throws SQLException {
        boolean commitsByItself = connection.getAutoCommit();
        if (commitsByItself) {
            lendsAutoCommit = true;
        } else if (lendsAutoCommit) {
            throw new NotConnectedException(
                    "the DataSource lent a connection with auto-commit off, an earlier one had it on: it lends the"
                            + " connection of a running transaction, or the application returned it to the pool like that. "
                            + GIVE_THE_POOL,
                    null);
        }
        if (known.hasTransaction(connection)) {
            throw new NotConnectedException(
                    "the DataSource lent a connection on which a transaction is running. " + GIVE_THE_POOL, null);
        }
    }
}
