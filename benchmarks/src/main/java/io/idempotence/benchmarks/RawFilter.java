package io.idempotence.benchmarks;

import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import javax.sql.DataSource;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.params.SetParams;

/**
 * The least that an ID can cost: raw commands around the handler, with values as long as ours. No fingerprint, no owner, no lease, no held
 * response: it protects nothing.
 */
final class RawFilter implements Filter {
    /** As long as the record of a claim, and of the benchmark's response. */
    static final byte[] CLAIMED = new byte[62];

    static final byte[] COMPLETED = new byte[99];

    private static final long RETENTION_MILLIS = 86_400_000;
    private static final String INSERT = "INSERT INTO floor (value, id) VALUES (?, ?) ON CONFLICT DO NOTHING";
    private static final String UPDATE = "UPDATE floor SET value = ? WHERE id = ?";

    private final Around around;

    /** Runs the handler between raw commands for an ID. */
    @FunctionalInterface
    private interface Around {
        void run(String id, ServletRequest request, ServletResponse response, FilterChain handler)
                throws IOException, ServletException, SQLException;
    }

    private RawFilter(Around around) {
        this.around = around;
    }

    /** {@code SET NX PX} before the handler and {@code SET PX} after it. */
    static RawFilter twoCommands(RedisClient client) {
        return new RawFilter((id, request, response, handler) -> {
            byte[] key = key("floor:", id);
            SetParams ifNew = new SetParams().nx().px(RETENTION_MILLIS);
            if (client.set(key, CLAIMED, ifNew) == null) {
                throw new IllegalStateException("an ID came twice");
            }
            handler.doFilter(request, response);
            client.set(key, COMPLETED, new SetParams().px(RETENTION_MILLIS));
        });
    }

    /** {@code GET} before the handler, which runs instead of a replay. */
    static RawFilter oneGet(RedisClient client) {
        return new RawFilter((id, request, response, handler) -> {
            byte[] key = key("get:", id);
            if (client.get(key) == null) {
                client.set(key, COMPLETED);
            }
            handler.doFilter(request, response);
        });
    }

    /** {@code INSERT} before the handler and {@code UPDATE} after it, each committed. */
    static RawFilter twoStatements(DataSource dataSource) throws SQLException {
        try (Connection connection = dataSource.getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute("CREATE TABLE IF NOT EXISTS floor (id VARCHAR(128) PRIMARY KEY, value BYTEA)");
        }
        return new RawFilter((id, request, response, handler) -> {
            execute(dataSource, INSERT, CLAIMED, id);
            handler.doFilter(request, response);
            execute(dataSource, UPDATE, COMPLETED, id);
        });
    }

    private static byte[] key(String prefix, String id) {
        return (prefix + id).getBytes(StandardCharsets.US_ASCII);
    }

    private static void execute(DataSource dataSource, String sql, byte[] value, String id) throws SQLException {
        try (Connection connection = dataSource.getConnection();
                PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setBytes(1, value);
            statement.setString(2, id);
            statement.executeUpdate();
        }
    }

    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        String id = ((HttpServletRequest) request).getHeader("Idempotency-Key");
        try {
            around.run(id, request, response, chain);
        } catch (SQLException e) {
            throw new ServletException(e);
        }
    }
}
