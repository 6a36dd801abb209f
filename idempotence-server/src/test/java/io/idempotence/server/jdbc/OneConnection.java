package io.idempotence.server.jdbc;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import org.springframework.jdbc.datasource.AbstractDataSource;

/** A {@code DataSource} that lends the same connection again and again, and counts how often it came back. */
final class OneConnection extends AbstractDataSource {
    private final Connection connection;
    int lent;
    int givenBack;

    OneConnection(Connection connection) {
        this.connection = connection;
    }

    @Override
    public Connection getConnection() {
        lent++;
        return (Connection) Proxy.newProxyInstance(
                Connection.class.getClassLoader(), new Class<?>[] {Connection.class}, (self, method, args) -> {
                    if (method.getName().equals("close")) {
                        givenBack++;
                        return null;
                    }
                    try {
                        return method.invoke(connection, args);
                    } catch (InvocationTargetException e) {
                        throw e.getCause();
                    }
                });
    }

    @Override
    public Connection getConnection(String user, String password) {
        return getConnection();
    }
}
