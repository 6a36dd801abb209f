package io.idempotence.cli;

import java.io.PrintWriter;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.sql.SQLFeatureNotSupportedException;
import java.util.Properties;
import java.util.logging.Logger;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/** A {@code DataSource} that opens a new connection each time, without a pool. */
final class DriverDataSource implements DataSource {
    private static final int LOGIN_SECONDS = 10;

    private final String url;
    private final Properties properties = new Properties();

    DriverDataSource(String url, @Nullable String user, @Nullable String password) {
        this.url = url;
        if (user != null) {
            properties.setProperty("user", user);
        }
        if (password != null) {
            properties.setProperty("password", password);
        }
        DriverManager.setLoginTimeout(LOGIN_SECONDS);
        if (url.startsWith("jdbc:postgresql:")) {
            // This driver ignores the timeout of the DriverManager. A parameter of the URL has priority.
            properties.setProperty("loginTimeout", Integer.toString(LOGIN_SECONDS));
        }
    }

    @Override
    public Connection getConnection() throws SQLException {
        return DriverManager.getConnection(url, properties);
    }

    @Override
    public Connection getConnection(String user, String password) throws SQLException {
        throw new SQLFeatureNotSupportedException();
    }

    @Override
    public @Nullable PrintWriter getLogWriter() {
        return null;
    }

    @Override
    public void setLogWriter(PrintWriter out) {}

    @Override
    public void setLoginTimeout(int seconds) {}

    @Override
    public int getLoginTimeout() {
        return LOGIN_SECONDS;
    }

    @Override
    public Logger getParentLogger() throws SQLFeatureNotSupportedException {
        throw new SQLFeatureNotSupportedException();
    }

    @Override
    public <T> T unwrap(Class<T> type) throws SQLException {
        throw new SQLException("this DataSource wraps no other");
    }

    @Override
    public boolean isWrapperFor(Class<?> type) {
        return false;
    }
}
