package io.idempotence.server.jdbc;

import java.lang.reflect.Method;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The {@code DataSource} of the application and those that it wraps, as far as they can be seen. */
record Lenders(List<Object> chain) {
    private static final Logger LOG = LoggerFactory.getLogger(JdbcIdempotenceStorage.class);
    /** A request that cannot get a connection holds its thread for so long. */
    private static final Duration LONG_WAIT = Duration.ofSeconds(5);

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

    /** HikariCP's {@code connectionTimeout}, if it is one of them. */
    void warnOfLongWaits() {
        chain.stream()
                .map(one -> ask(one, "getConnectionTimeout"))
                .filter(Long.class::isInstance)
                .map(Long.class::cast)
                .findFirst()
                .filter(millis -> millis == 0 || millis > LONG_WAIT.toMillis())
                .ifPresent(millis -> LOG.warn(
                        "the pool's connectionTimeout is {} ms: while the database is out of reach or the pool exhausted, each"
                                + " request holds its thread that long; set it to {} ms or less, or give the records a"
                                + " small pool of their own",
                        millis,
                        LONG_WAIT.toMillis()));
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
