package io.idempotence.server.jdbc;

import java.lang.reflect.Method;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The application's {@code DataSource} and those that it wraps, as far as they are visible. */
record DataSourceChain(List<Object> chain) {
    private static final Logger LOG = LoggerFactory.getLogger(JdbcIdempotenceStorage.class);
    /** The connection timeout from which {@link #warnOfLongWaits} warns. A request without a connection holds its thread for that time. */
    private static final Duration LONG_WAIT = Duration.ofSeconds(5);

    private static final int MOST = 10;
    private static final List<String> GETTERS_OF_THE_NEXT = List.of("getTargetDataSource", "getDataSource");

    static DataSourceChain of(DataSource dataSource) {
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
        return new DataSourceChain(chain);
    }

    /**
     * Refuses a {@code DataSource} that lends the connection of the running transaction, such as Spring's {@code
     * TransactionAwareDataSourceProxy}. It is recognised by its class name.
     *
     * @throws IllegalArgumentException if there is one
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

    /** Warns of a long {@code connectionTimeout}, if one of them is a HikariCP pool. */
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
            // There is no such accessible method, so this class is not HikariCP's.
            return null;
        }
    }
}
