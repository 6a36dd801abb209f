package io.idempotence.server.jdbc;

import java.lang.reflect.Method;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The application's {@code DataSource} and those that it wraps, as far as they are visible. */
record DataSourceChain(List<Object> chain) {
    private static final Logger LOG = LoggerFactory.getLogger(JdbcIdempotenceStorage.class);
    /** The longest wait for a connection without a warning. A request without a connection holds its thread for that time. */
    private static final Duration LONG_WAIT = Duration.ofSeconds(5);

    private static final int MOST = 10;
    /** Those of HikariCP, of the pools of Druid and Tomcat, and of DBCP2. */
    private static final List<String> GETTERS_OF_THE_WAIT =
            List.of("getConnectionTimeout", "getMaxWait", "getMaxWaitMillis");

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

    /** Warns if one of them is a pool that lets its callers wait for long. */
    void warnOfLongWaits() {
        for (Object one : chain) {
            for (String getter : GETTERS_OF_THE_WAIT) {
                if (ask(one, getter) instanceof Number millis) {
                    warnOfLongWait(
                            getter.substring(3, 4).toLowerCase(Locale.ROOT) + getter.substring(4), millis.longValue());
                    return;
                }
            }
        }
    }

    private static void warnOfLongWait(String setting, long millis) {
        // With 0, DBCP2 does not wait; the others have no limit.
        boolean unlimited = millis < 0 || (millis == 0 && !setting.equals("maxWaitMillis"));
        if (unlimited || millis > LONG_WAIT.toMillis()) {
            LOG.warn(
                    "the pool's {} {}: while the database is out of reach or the pool exhausted, each request holds its thread as"
                            + " long as it waits; set it to {} ms or less, or give the records a small pool of their own",
                    setting,
                    unlimited ? "sets no limit" : "is " + millis + " ms",
                    LONG_WAIT.toMillis());
        }
    }

    private static @Nullable Object ask(Object one, String getter) {
        try {
            Method method = one.getClass().getMethod(getter);
            return method.invoke(one);
        } catch (ReflectiveOperationException | RuntimeException e) {
            // There is no such accessible method, so this class is another one.
            return null;
        }
    }
}
