package io.idempotence.server.jdbc;

import io.idempotence.internal.Causes;
import io.idempotence.server.storage.StorageUnavailableException;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.SQLFeatureNotSupportedException;
import java.sql.SQLTimeoutException;
import java.sql.SQLTransientConnectionException;
import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import javax.sql.DataSource;

/** Borrows connections, gives them back as they were, and tells what their failures mean. */
final class Database {
    static final int TRIES = 12;
    private static final String SAFE_STATE = "[0-9A-Z]{5}";

    private final DataSource dataSource;
    private final int networkTimeoutMillis;
    private final int timeoutSeconds;

    Database(DataSource dataSource, Duration statementTimeout) {
        this.dataSource = dataSource;
        this.timeoutSeconds = (int) Math.max(1, statementTimeout.plusMillis(999).toSeconds());
        this.networkTimeoutMillis = timeoutSeconds * 1_000 + 1_000;
    }

    /** Statements on one connection, each a transaction of its own; all of them may be sent again. */
    @FunctionalInterface
    interface Work<T> {
        T on(Session session) throws SQLException;
    }

    /** A session on a connection that the caller has. */
    Session session(Connection connection) {
        return new Session(connection, timeoutSeconds);
    }

    /** Tries again after a conflict, for no longer than one statement may take. */
    <T> T run(String action, Work<T> work) {
        long start = System.nanoTime();
        for (int tried = 1; ; tried++) {
            try {
                return once(work);
            } catch (SQLException e) {
                boolean late = System.nanoTime() - start > TimeUnit.SECONDS.toNanos(timeoutSeconds);
                if (tried == TRIES || late || !isConflict(e)) {
                    throw unavailable(action, e);
                }
                pause(tried);
            }
        }
    }

    /** The first try again is at once; then those that met each other go apart. */
    private static void pause(int tried) {
        if (tried > 1) {
            long longest = TimeUnit.MILLISECONDS.toNanos(1L << Math.min(tried, 5));
            LockSupport.parkNanos(ThreadLocalRandom.current().nextLong(longest));
        }
    }

    /** Without a second try and without translation. */
    <T> T once(Work<T> work) throws SQLException {
        Connection connection;
        try {
            connection = dataSource.getConnection();
        } catch (RuntimeException e) {
            throw new SQLTransientConnectionException("the DataSource gave no connection", e);
        }
        boolean manualCommit = false;
        int formerTimeout = -1;
        try {
            manualCommit = !connection.getAutoCommit();
            if (manualCommit) {
                connection.setAutoCommit(true);
            }
            formerTimeout = limitNetwork(connection);
            return work.on(session(connection));
        } finally {
            giveBack(connection, manualCommit, formerTimeout);
        }
    }

    /** A query timeout needs a server that listens. A silent network is noticed by this one only. */
    private int limitNetwork(Connection connection) throws SQLException {
        try {
            int former = connection.getNetworkTimeout();
            if (former != 0 && former <= networkTimeoutMillis) {
                return -1;
            }
            connection.setNetworkTimeout(Runnable::run, networkTimeoutMillis);
            return former;
        } catch (SQLFeatureNotSupportedException | AbstractMethodError e) {
            return -1;
        }
    }

    /** What was done stays done: a connection that cannot be put in order is the pool's to throw away. */
    private static void giveBack(Connection connection, boolean manualCommit, int formerTimeout) {
        try (connection) {
            if (!connection.isClosed()) {
                try {
                    if (manualCommit) {
                        connection.setAutoCommit(false);
                    }
                } finally {
                    if (formerTimeout >= 0) {
                        connection.setNetworkTimeout(Runnable::run, formerTimeout);
                    }
                }
            }
        } catch (SQLException e) {
            // Nothing of the record depends on it.
        }
    }

    static StorageUnavailableException unavailable(String action, SQLException e) {
        if (Causes.has(e, InterruptedException.class)) {
            Thread.currentThread().interrupt();
        }
        return new StorageUnavailableException("the database could not " + action + ": " + reason(e), e);
    }

    /** Why, in words that hold no key and no password: a driver's message may hold both. */
    private static String reason(SQLException e) {
        if (Thread.currentThread().isInterrupted()) {
            return "interrupted";
        }
        String state = e.getSQLState() == null ? "" : e.getSQLState();
        if (isConflict(e)) {
            return "deadlock or conflict with another transaction, again and again (" + state + ")";
        }
        if (isTimeout(e, state)) {
            return "no answer within the statement timeout (" + state + ")";
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

    /** Deadlock or serialization failure: the database did nothing, and would do it if asked again. */
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
