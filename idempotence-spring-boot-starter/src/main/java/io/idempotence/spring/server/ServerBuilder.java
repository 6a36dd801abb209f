package io.idempotence.spring.server;

import io.idempotence.http.IdempotencyKeyHeader;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.jdbc.JdbcIdempotenceStorage;
import io.idempotence.server.redis.RedisIdempotenceStorage;
import io.idempotence.server.servlet.BodyForm;
import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.server.servlet.IdempotenceFilterBuilder;
import io.idempotence.server.servlet.RequestScope;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.spring.server.IdempotenceServerProperties.Comparison;
import io.idempotence.spring.server.IdempotenceServerProperties.Header;
import io.idempotence.spring.server.IdempotenceServerProperties.Jdbc;
import io.idempotence.spring.server.IdempotenceServerProperties.Policy;
import io.idempotence.spring.server.IdempotenceServerProperties.Scope;
import java.time.Duration;
import java.util.function.Consumer;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.util.unit.DataSize;

/** Builds the parts of the provider half from properties. A value that a part refuses is reported with the name of its property. */
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
        return built[0];
    }

    Idempotence.Builder idempotence(ServerParts parts) {
        Idempotence.Builder idempotence = Idempotence.builder(parts.storage().storage());
        set("namespace", parts.namespace().name(), idempotence::namespace);
        set("redis.timeout", properties.redis().timeout(), ServerBuilder::checkTimeout);
        set("max-waiting", properties.maxWaiting(), idempotence::maxWaiting);
        return idempotence;
    }

    IdempotenceFilterBuilder filter(Idempotence idempotence) {
        IdempotenceFilterBuilder filter = IdempotenceFilter.builder(idempotence);
        set("methods", properties.methods(), methods -> filter.methods(methods.toArray(String[]::new)));
        if (!properties.requireId()) {
            filter.keyOptional();
        }
        filter.scope(scope());
        set("body-form", properties.bodyForm(), form -> filter.bodyForm(bodyForm(form)));
        set("header.max-length", properties.header().maxLength(), any -> filter.header(header(properties.header())));
        set("max-request-body", properties.maxRequestBody(), size -> filter.maxRequestBody(bytes(size)));
        set("max-response-body", properties.maxResponseBody(), size -> filter.maxResponseBody(bytes(size)));
        set("max-memory", properties.maxMemory(), size -> filter.maxMemory(size.toBytes()));
        set("max-form-parameters", properties.maxFormParameters(), filter::maxFormParameters);
        set("max-form-size", properties.maxFormSize(), size -> filter.maxFormSize(bytes(size)));
        set("max-wait", properties.maxWait(), filter::maxWait);
        set("keep-headers", properties.keepHeaders(), names -> filter.keepHeaders(names.toArray(String[]::new)));
        set("problem-base", properties.problemBase(), filter::problemBase);
        return filter;
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

    private RequestScope scope() {
        RequestScope scope = properties.scope() == Scope.PRINCIPAL ? RequestScope.principal() : request -> "";
        for (String header : properties.scopeHeaders()) {
            scope = RequestScope.header(header).and(scope);
        }
        return scope;
    }

    private static BodyForm bodyForm(Comparison comparison) {
        return comparison == Comparison.BYTES ? BodyForm.bytes() : BodyForm.canonicalJson();
    }

    private static IdempotencyKeyHeader header(Header given) {
        IdempotencyKeyHeader header = IdempotencyKeyHeader.standard().length(given.minLength(), given.maxLength());
        header = given.strict() ? header.strict() : header;
        return given.acceptSpace() ? header.acceptSpace() : header;
    }

    private static int bytes(DataSize size) {
        return (int) Math.max(Integer.MIN_VALUE, Math.min(Integer.MAX_VALUE, size.toBytes()));
    }

    /** Passes a value on, unless it is null. */
    static <T> void set(String name, @Nullable T value, Consumer<T> to) {
        if (value == null) {
            return;
        }
        try {
            to.accept(value);
        } catch (IllegalArgumentException | IllegalStateException e) {
            throw ServerSetUpException.ofProperty(name, value, String.valueOf(e.getMessage()), e);
        }
    }
}
