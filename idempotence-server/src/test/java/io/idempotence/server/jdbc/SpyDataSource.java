package io.idempotence.server.jdbc;

import java.io.PrintWriter;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.SQLFeatureNotSupportedException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.logging.Logger;
import javax.sql.DataSource;

/** A {@code DataSource} that counts what is executed, fails on demand, and may pretend to be another database. */
final class SpyDataSource implements DataSource {
    private final DataSource real;
    private final String product;
    final AtomicInteger executed = new AtomicInteger();
    final List<String> otherCalls = Collections.synchronizedList(new ArrayList<>());
    /** The name of a setter of a connection that fails from the second call on. */
    volatile String failing = "";

    volatile Throwable failsWith = new SQLException("not now");

    /** Why no connection is lent, the next time only. */
    final AtomicReference<SQLException> refusal = new AtomicReference<>();

    /** What happens after the next statement, once. */
    final AtomicReference<Runnable> afterNext = new AtomicReference<>(() -> {});

    private final Queue<Throwable> failures = new ArrayDeque<>();

    SpyDataSource(DataSource real) {
        this(real, null);
    }

    SpyDataSource(DataSource real, String product) {
        this.real = real;
        this.product = product;
    }

    synchronized void failNext(Throwable... next) {
        failures.addAll(List.of(next));
    }

    private synchronized Throwable nextFailure() {
        return failures.poll();
    }

    @Override
    public Connection getConnection() throws SQLException {
        SQLException refused = refusal.getAndSet(null);
        if (refused != null) {
            throw refused;
        }
        Connection connection = real.getConnection();
        return proxy(Connection.class, (method, args) -> {
            if (method.getName().equals("prepareStatement")) {
                return statement((PreparedStatement) method.invoke(connection, args));
            }
            if (method.getName().equals("getMetaData") && product != null) {
                return metaData(connection.getMetaData());
            }
            if (method.getName().startsWith("set") || method.getName().equals("commit")) {
                otherCalls.add(method.getName());
            }
            if (method.getName().equals(failing) && Collections.frequency(otherCalls, failing) > 1) {
                throw new InvocationTargetException(failsWith);
            }
            return method.invoke(connection, args);
        });
    }

    private PreparedStatement statement(PreparedStatement statement) {
        return proxy(PreparedStatement.class, (method, args) -> {
            if (method.getName().startsWith("execute")) {
                executed.incrementAndGet();
                Throwable failure = nextFailure();
                if (failure != null) {
                    throw new InvocationTargetException(failure);
                }
                Object reply = method.invoke(statement, args);
                afterNext.getAndSet(() -> {}).run();
                return reply;
            }
            return method.invoke(statement, args);
        });
    }

    private DatabaseMetaData metaData(DatabaseMetaData metaData) {
        return proxy(DatabaseMetaData.class, (method, args) -> switch (method.getName()) {
            case "getDatabaseProductName" -> product;
            case "getDatabaseProductVersion" -> "8.0.36";
            default -> method.invoke(metaData, args);
        });
    }

    private interface Call {
        Object invoke(Method method, Object[] args) throws Exception;
    }

    private static <T> T proxy(Class<T> type, Call call) {
        return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (self, method, args) -> {
            try {
                return call.invoke(method, args);
            } catch (InvocationTargetException e) {
                throw e.getCause();
            }
        }));
    }

    @Override
    public Connection getConnection(String username, String password) throws SQLException {
        return real.getConnection(username, password);
    }

    @Override
    public PrintWriter getLogWriter() throws SQLException {
        return real.getLogWriter();
    }

    @Override
    public void setLogWriter(PrintWriter out) throws SQLException {
        real.setLogWriter(out);
    }

    @Override
    public void setLoginTimeout(int seconds) throws SQLException {
        real.setLoginTimeout(seconds);
    }

    @Override
    public int getLoginTimeout() throws SQLException {
        return real.getLoginTimeout();
    }

    @Override
    public Logger getParentLogger() throws SQLFeatureNotSupportedException {
        return real.getParentLogger();
    }

    @Override
    public <T> T unwrap(Class<T> type) throws SQLException {
        return real.unwrap(type);
    }

    @Override
    public boolean isWrapperFor(Class<?> type) throws SQLException {
        return real.isWrapperFor(type);
    }
}
