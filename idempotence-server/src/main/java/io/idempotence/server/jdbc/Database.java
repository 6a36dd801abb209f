package io.idempotence.server.jdbc;

import io.idempotence.internal.Causes;
import io.idempotence.server.storage.StorageUnavailableException;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.SQLTimeoutException;
import java.sql.SQLTransientConnectionException;
import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/** The access to the database. It borrows connections, returns them in their original state, and translates failures. */
final class Database {
    static final int TRIES = 12;
    private static final String SAFE_STATE = "[0-9A-Z]{5}";
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
        this.networkTimeoutMillis = timeoutSeconds * 1_000 + 1_000;
    }

    /** Statements on one connection. Each is a transaction of its own, and all of them may be repeated. */
    @FunctionalInterface
    interface Work<T> {
        T on(Session session) throws SQLException;
    }

    /** Runs statements on the caller's connection, in the caller's transaction. */
    <T> T on(Connection connection, Dialect known, Work<T> work) throws SQLException {
        try (QueryTimeout limit = limitQueries(connection, known)) {
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
    <T> T run(String action, Work<T> work) {
        long start = System.nanoTime();
        for (int tried = 1; ; tried++) {
            try {
                return once(work);
            } catch (NotConnectedException e) {
                throw tried == 1 ? StorageUnavailableException.notSent(message(action, e), e) : unavailable(action, e);
            } catch (SQLException e) {
                boolean late = System.nanoTime() - start > TimeUnit.SECONDS.toNanos(timeoutSeconds);
                if (tried == TRIES || late || !isConflict(e)) {
                    throw unavailable(action, e);
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
    <T> T once(Work<T> work) throws SQLException {
        Connection connection;
        try {
            connection = dataSource.getConnection();
        } catch (SQLException | RuntimeException e) {
            throw new NotConnectedException("no connection, or no free connection in the pool in time", e);
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
            throw new NotConnectedException("a connection could not be set up: " + reason(e), e);
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

    static StorageUnavailableException unavailable(String action, SQLException e) {
        return new StorageUnavailableException(message(action, e), e);
    }

    private static String message(String action, SQLException e) {
        if (Causes.has(e, InterruptedException.class)) {
            Thread.currentThread().interrupt();
        }
        return "the database could not " + action + ": " + reason(e);
    }

    /** The reason of a failure, without keys and passwords, which a driver's message may contain. */
    private static String reason(SQLException e) {
        if (Thread.currentThread().isInterrupted()) {
            return "interrupted";
        }
        String state = e.getSQLState() == null ? "" : e.getSQLState();
        if (isConflict(e)) {
            return "deadlock or conflict with another transaction in every try (" + state + ")";
        }
        if (isTimeout(e, state)) {
            return "no reply within the statement timeout (" + state + ")";
        }
        if (e instanceof NotConnectedException) {
            return String.valueOf(e.getMessage());
        }
        if (e instanceof SQLTransientConnectionException || state.startsWith("08") || state.startsWith("57P")) {
            return "no connection, or no free connection in the pool in time";
        }
        if (isMissing(e)) {
            return "a table or a column is missing (" + state + ")";
        }
        return state.matches(SAFE_STATE)
                ? "SQLSTATE " + state + ", code " + e.getErrorCode()
                : e.getClass().getSimpleName();
    }

    private static boolean isTimeout(SQLException e, String state) {
        int code = e.getErrorCode();
        return e instanceof SQLTimeoutException
                || state.equals("57014") // PostgreSQL and H2: cancelled
                || state.equals("55P03") // PostgreSQL: lock not available
                || code == 1205 // MySQL: lock wait
                || code == 1969 // MariaDB: max_statement_time
                || code == 3024 // MySQL: max_execution_time
                || code == 50200; // H2: lock timeout
    }

    /** Whether a failure is a deadlock or serialization failure: the database did nothing, and a retry may succeed. */
    private static boolean isConflict(SQLException e) {
        String state = e.getSQLState();
        return "40001".equals(state)
                || "40P01".equals(state)
                || e.getErrorCode() == 1213 // MySQL: deadlock
                || e.getErrorCode() == 1020 // MariaDB: changed since last read
                || e.getErrorCode() == 90131; // H2: concurrent update
    }

    static boolean isDuplicate(SQLException e) {
        return "23505".equals(e.getSQLState()) || (e.getErrorCode() == 1062 && "23000".equals(e.getSQLState()));
    }

    static boolean isMissing(SQLException e) {
        String state = e.getSQLState();
        return state != null && (state.startsWith("42") || state.equals("3F000") || state.equals("90079"));
    }
}
