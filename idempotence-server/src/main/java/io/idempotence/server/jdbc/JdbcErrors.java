package io.idempotence.server.jdbc;

import io.idempotence.internal.Causes;
import io.idempotence.server.storage.StorageUnavailableException;
import java.io.IOException;
import java.net.ConnectException;
import java.net.UnknownHostException;
import java.sql.SQLException;
import java.sql.SQLTimeoutException;
import java.sql.SQLTransientConnectionException;
import java.util.Objects;
import javax.net.ssl.SSLException;
import org.jspecify.annotations.Nullable;

/** The meaning of a database's errors for the storage, by their SQLSTATE and code. */
final class JdbcErrors {
    private static final String CHECK_THE_URL = "; check the parameters of the URL, too, such as sslmode";
    private static final String SAFE_STATE = "[0-9A-Z]{5}";

    private JdbcErrors() {}

    /** A failure to get a usable connection. Nothing was sent. */
    static final class NotConnectedException extends SQLTransientConnectionException {
        private static final long serialVersionUID = 1L;

        /** @param reason the reason, without keys and passwords, which a driver's message may contain */
        NotConnectedException(String reason, @Nullable Throwable cause) {
            super(reason, cause);
        }
    }

    /** The failure of an action that may have been executed. */
    static StorageUnavailableException unavailable(String action, SQLException e) {
        return new StorageUnavailableException(message(action, e), e);
    }

    /** The failure of an action of which nothing was sent. */
    static StorageUnavailableException notSent(String action, SQLException e) {
        return StorageUnavailableException.notSent(message(action, e), e);
    }

    private static String message(String action, SQLException e) {
        if (Causes.has(e, InterruptedException.class)) {
            Thread.currentThread().interrupt();
        }
        return "the database could not " + action + ": " + reason(e);
    }

    /** The reason of a failure, without keys and passwords, which a driver's message may contain. */
    static String reason(SQLException e) {
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
        String refused = refusal(e);
        if (refused != null) {
            return refused;
        }
        if (isMissing(e)) {
            return "a table or a column is missing (" + state + ")";
        }
        return state.matches(SAFE_STATE)
                ? "SQLSTATE " + state + ", code " + e.getErrorCode()
                : e.getClass().getSimpleName();
    }

    /** Why there is no connection. */
    static String noConnection(Exception e) {
        return Causes.of(e)
                .map(JdbcErrors::whyNoConnection)
                .filter(Objects::nonNull)
                .findFirst()
                .map(why -> "no connection: " + why)
                .orElseGet(() -> "no connection, or no free connection in the pool in time" + state(e)
                        + (mayBeOfTheUrl(e) ? CHECK_THE_URL : ""));
    }

    private static @Nullable String whyNoConnection(Throwable cause) {
        if (cause instanceof UnknownHostException) {
            return "its host is unknown";
        }
        if (cause instanceof ConnectException) {
            return "nothing accepts connections at its address; check that it runs, its host and its port";
        }
        if (cause instanceof SSLException) {
            return "TLS failed; the JVM must trust the server's certificate" + CHECK_THE_URL;
        }
        if (cause instanceof SQLException refused) {
            if (hasTooManyConnections(refused)) {
                return "the server has too many connections; make the pools smaller, or its max_connections larger";
            }
            // The driver of PostgreSQL has one state for both, and no codes. Servers of other makers have a code.
            return "08004".equals(refused.getSQLState()) && refused.getErrorCode() == 0
                    ? "the server demands a password and got none, or has no TLS and was asked for it (08004)"
                            + CHECK_THE_URL
                    : refusal(refused);
        }
        return null;
    }

    /** Whether a server responds, but wants another kind of connection. MariaDB's driver, among others, has no better state for that. */
    private static boolean mayBeOfTheUrl(Exception e) {
        return !Causes.has(e, IOException.class)
                && Causes.of(e)
                        .anyMatch(cause ->
                                cause instanceof SQLException failure && "08000".equals(failure.getSQLState()));
    }

    private static boolean hasTooManyConnections(SQLException e) {
        return e.getErrorCode() == 1040 // MySQL and MariaDB, with the state 08004
                || "53300".equals(e.getSQLState()); // PostgreSQL
    }

    /** The innermost SQLSTATE in parentheses; empty if there is none. */
    private static String state(Exception e) {
        return Causes.of(e)
                .map(cause -> cause instanceof SQLException failure ? failure.getSQLState() : null)
                .filter(state -> state != null && state.matches(SAFE_STATE))
                .reduce((outer, inner) -> inner)
                .map(state -> " (" + state + ")")
                .orElse("");
    }

    /** Whether the user lacks a right, or is refused. */
    static boolean isRefusal(SQLException e) {
        return refusal(e) != null;
    }

    /** Why the database refuses its user; null if it does not. */
    private static @Nullable String refusal(SQLException e) {
        String state = e.getSQLState() == null ? "" : e.getSQLState();
        int code = e.getErrorCode();
        if (state.startsWith("28") || code == 1045) {
            return "user or password refused (" + state + ")";
        }
        if (state.equals("3D000") || code == 1049) {
            return "no such database (" + state + ")";
        }
        // MySQL has one code for each kind of right; H2: 90096.
        return state.equals("42501") || code == 1044 || code == 1142 || code == 1143 || code == 1227 || code == 90096
                ? "the user lacks a right (" + state + ")"
                : null;
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

    /** Whether the size of a statement is certainly not why it failed: nothing was sent, or the database received it and ended it. */
    static boolean isNotOfSize(StorageUnavailableException e) {
        return e.nothingWritten()
                || (e.getCause() instanceof SQLException cause
                        && (isConflict(cause) || isTimeout(cause, String.valueOf(cause.getSQLState()))));
    }

    /** Whether a failure is a deadlock or serialization failure: the database did nothing, and a retry may succeed. */
    static boolean isConflict(SQLException e) {
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
