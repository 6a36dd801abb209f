package io.idempotence.spring.server;

import io.idempotence.internal.MaxWait;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.jdbc.JdbcIdempotenceStorage;
import io.idempotence.server.redis.RedisIdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.spring.internal.SetUpException;
import io.idempotence.spring.server.IdempotenceServerProperties.Jdbc;
import io.idempotence.spring.server.IdempotenceServerProperties.Policy;
import java.time.Duration;
import java.util.function.Consumer;
import java.util.function.Supplier;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.jdbc.datasource.DelegatingDataSource;
import org.springframework.jdbc.datasource.TransactionAwareDataSourceProxy;
import org.springframework.util.ClassUtils;

/** The builder of storage, policy and decisions from properties. If one of them refuses a value, the error names its property. */
final class ServerBuilder {
    private final IdempotenceServerProperties properties;

    ServerBuilder(IdempotenceServerProperties properties) {
        this.properties = properties;
    }

    IdempotencePolicy policy() {
        Policy policy = properties.policy();
        IdempotencePolicy.Builder builder = IdempotencePolicy.builder().failureRule(policy.failureRule());
        set("policy.lease", policy.lease(), builder::lease);
        set("policy.on-abandoned", policy.onAbandoned(), builder::onAbandoned);
        set("policy.retention", policy.retention(), builder::retention);
        IdempotencePolicy built = checked("policy.retention", policy.retention(), builder::build);
        return checked(
                "policy.completion",
                policy.completion(),
                () -> built.toBuilder().completion(policy.completion()).build());
    }

    Idempotence.Builder idempotence(ServerParts parts) {
        Idempotence.Builder idempotence = Idempotence.builder(parts.storage().storage());
        set("redis.timeout", properties.redis().timeout(), ServerBuilder::checkTimeout);
        set("max-wait", properties.maxWait(), MaxWait::checked);
        set("namespace", parts.namespace().name(), idempotence::namespace);
        set("max-waiting-duplicates", properties.maxWaitingDuplicates(), idempotence::maxWaitingDuplicates);
        return idempotence;
    }

    IdempotenceStorage redis(RedisConnectionFactory connections) {
        Duration timeout = properties.redis().timeout();
        return RedisIdempotenceStorage.over(SpringDataCommands.of(connections, timeout));
    }

    private static void checkTimeout(Duration timeout) {
        if (timeout.compareTo(Duration.ofMillis(10)) < 0 || timeout.compareTo(Duration.ofMinutes(1)) > 0) {
            throw new IllegalArgumentException("timeout must be 10ms to 1m, got " + timeout);
        }
    }

    JdbcIdempotenceStorage.Builder jdbc(DataSource dataSource) {
        Jdbc jdbc = properties.jdbc();
        JdbcIdempotenceStorage.Builder storage =
                JdbcIdempotenceStorage.builder(withoutTransactions(dataSource)).lazyStart();
        set("jdbc.table", jdbc.table(), storage::table);
        set("jdbc.applied-table", jdbc.appliedTable(), storage::appliedTable);
        set("jdbc.statement-timeout", jdbc.statementTimeout(), storage::statementTimeout);
        set("jdbc.clean-up-every", jdbc.cleanUpEvery(), storage::cleanUpEvery);
        if (jdbc.createIfMissing()) {
            storage.createIfMissing();
        }
        if (jdbc.inTransaction()) {
            storage.inTransaction();
        }
        return storage;
    }

    /** Records must survive the rollback of a business transaction. */
    private static DataSource withoutTransactions(DataSource dataSource) {
        if (!ClassUtils.isPresent(
                "org.springframework.jdbc.datasource.DelegatingDataSource", ServerBuilder.class.getClassLoader())) {
            return dataSource;
        }
        DataSource pool = dataSource;
        for (DataSource next = dataSource; next instanceof DelegatingDataSource wrapper; ) {
            next = wrapper.getTargetDataSource();
            if (wrapper instanceof TransactionAwareDataSourceProxy && next != null) {
                pool = next;
            }
        }
        return pool;
    }

    /**
     * Passes a value on, unless it is null.
     *
     * @param name the property below {@code idempotence.server}
     * @throws SetUpException if the value is not allowed
     */
    static <T> void set(String name, @Nullable T value, Consumer<T> setter) {
        if (value != null) {
            checked(name, value, () -> {
                setter.accept(value);
                return value;
            });
        }
    }

    /**
     * Builds something from a value.
     *
     * @param name the property below {@code idempotence.server}
     * @throws SetUpException if the value is not allowed
     */
    static <T> T checked(String name, Object value, Supplier<T> build) {
        try {
            return build.get();
        } catch (IllegalArgumentException e) {
            String property = IdempotenceServerProperties.PREFIX + "." + name;
            throw SetUpException.ofProperty(
                    property, value, String.valueOf(e.getMessage()), "Change the value of " + property + ".", e);
        }
    }
}
