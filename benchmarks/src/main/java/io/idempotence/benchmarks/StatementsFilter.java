package io.idempotence.benchmarks;

import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import java.io.IOException;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import javax.sql.DataSource;

/**
 * The least that an ID in a database can cost: a raw INSERT before the handler and a raw UPDATE after it, each committed, with values as
 * long as ours. No owner, no lease, no look-up of a duplicate: it protects nothing.
 */
final class StatementsFilter implements Filter {
    private static final String INSERT = "INSERT INTO floor (id, value) VALUES (?, ?) ON CONFLICT DO NOTHING";
    private static final String UPDATE = "UPDATE floor SET value = ? WHERE id = ?";

    private final DataSource dataSource;

    StatementsFilter(DataSource dataSource) throws SQLException {
        this.dataSource = dataSource;
        try (Connection connection = dataSource.getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute("CREATE TABLE IF NOT EXISTS floor (id VARCHAR(128) PRIMARY KEY, value BYTEA)");
        }
    }

    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        String id = ((HttpServletRequest) request).getHeader("Idempotency-Key");
        try {
            try (Connection connection = dataSource.getConnection();
                    PreparedStatement insert = connection.prepareStatement(INSERT)) {
                insert.setString(1, id);
                insert.setBytes(2, FloorFilter.CLAIMED);
                insert.executeUpdate();
            }
            chain.doFilter(request, response);
            try (Connection connection = dataSource.getConnection();
                    PreparedStatement update = connection.prepareStatement(UPDATE)) {
                update.setBytes(1, FloorFilter.COMPLETED);
                update.setString(2, id);
                update.executeUpdate();
            }
        } catch (SQLException e) {
            throw new ServletException(e);
        }
    }
}
