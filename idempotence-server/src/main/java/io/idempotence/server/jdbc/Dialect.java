package io.idempotence.server.jdbc;

import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Locale;

/** The supported databases and the differences between them. */
enum Dialect {
    POSTGRESQL(
            "PostgreSQL", "postgresql.sql", "CAST(floor(extract(epoch FROM statement_timestamp()) * 1000) AS bigint)"),
    // UTC, because NOW() uses the session's time zone, in which an hour may occur twice.
    /** MySQL and MariaDB. */
    MYSQL("MySQL", "mysql.sql", "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000)"),
    H2("H2", "h2.sql", "CAST(FLOOR(EXTRACT(EPOCH FROM CURRENT_TIMESTAMP) * 1000) AS BIGINT)");

    private static final String TRANSACTION_IS_ACTIVE = "25001";

    final String title;
    final String schemaFile;
    /** The SQL expression for milliseconds since 1970 by the database's clock; constant within a statement. */
    final String now;

    Dialect(String title, String schemaFile, String now) {
        this.title = title;
        this.schemaFile = schemaFile;
        this.now = now;
    }

    /** Where the schema file is in this jar. */
    String schemaLocation() {
        return "io/idempotence/server/jdbc/" + schemaFile;
    }

    /**
     * Whether a transaction is running on the connection. It is neither committed nor rolled back.
     *
     * <p>The driver of PostgreSQL and the servers of MySQL and MariaDB refuse to change the mode of a transaction once it has begun; the
     * check requests the mode that is set already. H2 reports only transactions that have changed something.
     */
    boolean hasTransaction(Connection connection) throws SQLException {
        try {
            if (this == POSTGRESQL) {
                connection.setReadOnly(connection.isReadOnly());
                return false;
            }
            if (connection.getAutoCommit()) {
                return false;
            }
            try (Statement statement = connection.createStatement()) {
                if (this == MYSQL) {
                    statement.execute("SET TRANSACTION READ WRITE");
                    return false;
                }
                try (ResultSet rows = statement.executeQuery("SELECT TRANSACTION_ID()")) {
                    return rows.next() && rows.getString(1) != null;
                }
            }
        } catch (SQLException e) {
            if (TRANSACTION_IS_ACTIVE.equals(e.getSQLState())) {
                return true;
            }
            throw e;
        }
    }

    static Dialect of(DatabaseMetaData metaData) throws SQLException {
        String product = String.valueOf(metaData.getDatabaseProductName());
        return switch (product.toLowerCase(Locale.ROOT)) {
            case "postgresql" -> POSTGRESQL;
            case "mysql", "mariadb" -> MYSQL;
            case "h2" -> H2;
            default ->
                throw new IllegalArgumentException("the database " + product
                        + " is not supported; supported are PostgreSQL 10, MySQL 8, MariaDB 10.5, H2 2, each or later");
        };
    }
}
