package io.idempotence.spring.server;

import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.jdbc.JdbcIdempotenceStorage;
import io.idempotence.server.redis.RedisIdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.spring.server.IdempotenceServerProperties.Jdbc;
import io.idempotence.spring.server.IdempotenceServerProperties.Policy;
import java.time.Duration;
import java.util.function.Consumer;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.springframework.data.redis.connection.RedisConnectionFactory;

/** Builds storage, policy and decisions from properties. A value that one of them refuses is reported with the name of its property. */
final class ServerBuilder {
    private final IdempotenceServerProperties properties;

    ServerBuilder(IdempotenceServerProperties properties) {
        this.properties = properties;
    }

    IdempotencePolicy policy() {
        Policy given = properties.policy();
        IdempotencePolicy.Builder policy = IdempotencePolicy.builder().failureRule(given.failureRule());
        set("policy.lease", given.lease(), policy::lease);
        set("policy.retention", given.retention(), policy::retention);
        set("policy.on-abandoned", given.onAbandoned(), policy::onAbandoned);
        IdempotencePolicy[] built = new IdempotencePolicy[1];
        set("policy.retention", given.retention(), retention -> built[0] = policy.build());
        set(
                "policy.completion",
                given.completion(),
                completion ->
                        built[0] = built[0].toBuilder().completion(completion).build());
        return built[0];
    }

    Idempotence.Builder idempotence(ServerParts parts) {
        Idempotence.Builder idempotence = Idempotence.builder(parts.storage().storage());
        set("namespace", parts.namespace().name(), idempotence::namespace);
        set("redis.timeout", properties.redis().timeout(), ServerBuilder::checkTimeout);
        set("max-waiting", properties.maxWaiting(), idempotence::maxWaiting);
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
        Jdbc given = properties.jdbc();
        JdbcIdempotenceStorage.Builder jdbc =
                JdbcIdempotenceStorage.builder(dataSource).lazyStart();
        set("jdbc.table", given.table(), jdbc::table);
        set("jdbc.applied-table", given.appliedTable(), jdbc::appliedTable);
        set("jdbc.statement-timeout", given.statementTimeout(), jdbc::statementTimeout);
        set("jdbc.clean-up-every", given.cleanUpEvery(), jdbc::cleanUpEvery);
        if (given.createIfMissing()) {
            jdbc.createIfMissing();
        }
        if (given.inTransaction()) {
            jdbc.inTransaction();
        }
        return jdbc;
    }

    /** Passes a value on, unless it is null. */
    static <T> void set(String name, @Nullable T value, Consumer<T> to) {
        if (value == null) {
            return;
        }
        try {
            to.accept(value);
        } catch (IllegalArgumentException e) {
            throw ServerSetUpException.ofProperty(name, value, String.valueOf(e.getMessage()), e);
        }
    }
}
