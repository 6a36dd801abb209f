package io.idempotence.server.jdbc;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** The state of a connection and of its session at the server, as far as it can be read. */
final class SessionState {
    /** Of the session's variables those that each statement changes, or the driver's cache. */
    private static final List<String> OF_THE_LAST_STATEMENT = List.of(
            "timestamp", "rand_seed", "error_count", "warning_count", "last_insert_id", "identity", "last_gtid");

    private SessionState() {}

    /** Leaves no transaction behind. */
    static Map<String, String> of(Connection connection, Dialect dialect) throws SQLException {
        Map<String, String> state = new TreeMap<>();
        state.put("JDBC auto-commit", "" + connection.getAutoCommit());
        state.put("JDBC read-only", "" + connection.isReadOnly());
        state.put("JDBC catalog", connection.getCatalog());
        state.put("JDBC schema", connection.getSchema());
        state.put("JDBC holdability", "" + connection.getHoldability());
        state.put("JDBC network timeout", "" + connection.getNetworkTimeout());
        state.put("JDBC client info", "" + connection.getClientInfo());
        state.put("JDBC type map", "" + connection.getTypeMap());
        state.put("JDBC warnings", "" + connection.getWarnings());
        state.put("JDBC isolation", "" + connection.getTransactionIsolation());
        try (Statement statement = connection.createStatement()) {
            state.put("JDBC query timeout", "" + statement.getQueryTimeout());
            try (ResultSet rows = statement.executeQuery(variables(dialect))) {
                while (rows.next()) {
                    String name = rows.getString(1);
                    if (OF_THE_LAST_STATEMENT.stream().noneMatch(name::startsWith)) {
                        state.put("session " + name, rows.getString(2));
                    }
                }
            }
        }
        if (!connection.getAutoCommit()) {
            connection.rollback();
        }
        return state;
    }

    private static String variables(Dialect dialect) {
        return switch (dialect) {
            case POSTGRESQL -> "SELECT name, setting FROM pg_settings WHERE name NOT LIKE 'transaction%'";
            case MYSQL -> "SHOW SESSION VARIABLES";
            // What begins with "info." are figures of the whole database.
            case H2 ->
                "SELECT SETTING_NAME, SETTING_VALUE FROM INFORMATION_SCHEMA.SETTINGS WHERE SETTING_NAME NOT LIKE 'info.%'";
        };
    }
}
