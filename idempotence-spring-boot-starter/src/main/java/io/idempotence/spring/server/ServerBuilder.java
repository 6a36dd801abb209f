package io.idempotence.spring.server;

import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.jdbc.JdbcIdempotenceStorage;
import io.idempotence.server.redis.RedisIdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.spring.server.IdempotenceServerProperties.Jdbc;
import io.idempotence.spring.server.IdempotenceServerProperties.Policy;
import java.time.Duration;
import javax.sql.DataSource;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.jdbc.datasource.DelegatingDataSource;
import org.springframework.jdbc.datasource.TransactionAwareDataSourceProxy;
import org.springframework.util.ClassUtils;

/** Builds storage, policy and decisions from properties. A value that one of them refuses is reported with the name of its property. */
final class ServerBuilder {
    private final IdempotenceServerProperties properties;

    ServerBuilder(IdempotenceServerProperties properties) {
        this.properties = properties;
    }

    IdempotencePolicy policy() {
        Policy policy = properties.policy();
        Given given = new Given();
        try {
            IdempotencePolicy built = IdempotencePolicy.builder()
                    .failureRule(policy.failureRule())
                    .lease(given.value("policy.lease", policy.lease()))
                    .onAbandoned(given.value("policy.on-abandoned", policy.onAbandoned()))
                    .retention(given.value("policy.retention", policy.retention()))
                    .build();
            return built.toBuilder()
                    .completion(given.value("policy.completion", policy.completion()))
                    .build();
        } catch (IllegalArgumentException e) {
            throw given.refused(e);
        }
    }

    Idempotence.Builder idempotence(ServerParts parts) {
        Idempotence.Builder idempotence = Idempotence.builder(parts.storage().storage());
        Given given = new Given();
        try {
            checkTimeout(given.value("redis.timeout", properties.redis().timeout()));
            return idempotence
                    .namespace(given.value("namespace", parts.namespace().name()))
                    .maxWaiting(given.value("max-waiting", properties.maxWaiting()));
        } catch (IllegalArgumentException e) {
            throw given.refused(e);
        }
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
        Given given = new Given();
        try {
            storage.table(given.value("jdbc.table", jdbc.table()))
                    .appliedTable(given.value("jdbc.applied-table", jdbc.appliedTable()))
                    .statementTimeout(given.value("jdbc.statement-timeout", jdbc.statementTimeout()))
                    .cleanUpEvery(given.value("jdbc.clean-up-every", jdbc.cleanUpEvery()));
        } catch (IllegalArgumentException e) {
            throw given.refused(e);
        }
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

    /** The values that were passed on. The last one is the one that is refused. */
    static final class Given {
        private String name = "";
        private Object value = "";

        <T> T value(String name, T value) {
            this.name = name;
            this.value = value;
            return value;
        }

        ServerSetUpException refused(IllegalArgumentException e) {
            return ServerSetUpException.ofProperty(name, value, String.valueOf(e.getMessage()), e);
        }
    }
}
