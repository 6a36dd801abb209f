package io.idempotence.server.jdbc;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/** The {@code DataSource} of the application and those that it wraps, as far as they can be seen. */
record Lenders(List<Object> chain) {
    private static final int MOST = 10;
    private static final List<String> GETTERS_OF_THE_NEXT = List.of("getTargetDataSource", "getDataSource");

    static Lenders of(DataSource dataSource) {
        List<Object> chain = new ArrayList<>();
        for (Object next = dataSource; next instanceof DataSource && chain.size() < MOST; ) {
            chain.add(next);
            Object one = next;
            next = GETTERS_OF_THE_NEXT.stream()
                    .map(getter -> ask(one, getter))
                    .filter(DataSource.class::isInstance)
                    .findFirst()
                    .orElse(null);
        }
        return new Lenders(chain);
    }

    /**
     * Checks that none of them has the name of one that lends the connection of the running transaction, as Spring's {@code
     * TransactionAwareDataSourceProxy} does.
     *
     * @throws IllegalArgumentException if one does
     */
    void refuseTransactionAware() {
        for (Object one : chain) {
            for (Class<?> type = one.getClass(); type != null; type = type.getSuperclass()) {
                if (type.getSimpleName().startsWith("TransactionAware")) {
                    throw new IllegalArgumentException("the DataSource is a " + type.getSimpleName()
                            + ", which lends the connection of the running transaction. " + Database.GIVE_THE_POOL);
                }
            }
        }
    }

    /** How long HikariCP, if it is one, lets a caller wait for a connection. */
    OptionalLong waitMillis() {
        return chain.stream()
                .map(one -> ask(one, "getConnectionTimeout"))
                .filter(Long.class::isInstance)
                .mapToLong(Long.class::cast)
                .findFirst();
    }

    private static @Nullable Object ask(Object one, String getter) {
        try {
            Method method = one.getClass().getMethod(getter);
            return method.invoke(one);
        } catch (ReflectiveOperationException | RuntimeException e) {
            // It has none, or not for us: it is not one of those that are looked for.
            return null;
        }
    }
}
