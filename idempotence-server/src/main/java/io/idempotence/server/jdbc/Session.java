package io.idempotence.server.jdbc;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

/** A connection and the timeout of its statements. */
record Session(Connection connection, Dialect dialect, int timeoutSeconds) {
    /** A function that reads a result. */
    @FunctionalInterface
    interface Reader<T> {
        T read(ResultSet rows) throws SQLException;
    }

    /** Sets the timeout of a statement. On H2 the connection has the timeout, see {@link BorrowedConnection.QueryTimeout}. */
    void limit(Statement statement) throws SQLException {
        if (dialect != Dialect.H2) {
            statement.setQueryTimeout(timeoutSeconds);
        }
    }

    int update(Sql sql, Sql.Parameters parameters) throws SQLException {
        try (PreparedStatement statement = prepare(sql, parameters)) {
            return statement.executeUpdate();
        }
    }

    /** Inserts a row. False if there is one with its key. */
    boolean insert(Sql sql, Sql.Parameters parameters) throws SQLException {
        try {
            return update(sql, parameters) == 1;
        } catch (SQLException e) {
            if (JdbcErrors.isDuplicate(e)) {
                return false;
            }
            throw e;
        }
    }

    <T> T query(Sql sql, Sql.Parameters parameters, Reader<T> reader) throws SQLException {
        try (PreparedStatement statement = prepare(sql, parameters);
                ResultSet rows = statement.executeQuery()) {
            return reader.read(rows);
        }
    }

    private PreparedStatement prepare(Sql sql, Sql.Parameters parameters) throws SQLException {
        PreparedStatement statement = sql.prepare(connection, parameters);
        try {
            limit(statement);
            return statement;
        } catch (SQLException | RuntimeException e) {
            statement.close();
            throw e;
        }
    }
}
