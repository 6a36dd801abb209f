package io.idempotence.spring.server;

import io.idempotence.FailureRule;
import io.idempotence.OnAbandoned;
import io.idempotence.server.IdempotencePolicy;
import java.net.URI;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;
import org.springframework.util.unit.DataSize;

/**
 * The properties {@code idempotence.server.*}. An unknown one fails the start.
 *
 * @param enabled Whether handlers and bean methods of this application are protected.
 * @param storage Where the records are kept. "auto" uses the RedisConnectionFactory, else a Jedis client, else memory.
 * @param storageBean Name of the RedisConnectionFactory, Jedis client or DataSource to use, if the application has several.
 * @param namespace Name of this service in the storage. Services with equal names share their IDs. Defaults to spring.application.name.
 * @param paths URL patterns of the requests that are covered, such as /payments/*. Default: every request.
 * @param methods Methods that are protected. Others, such as PUT, are protected if the request carries an ID.
 * @param requireId Whether a request with one of the methods must carry an ID. Otherwise a request without one runs unprotected.
 * @param scope To whom an ID belongs.
 * @param scopeHeaders Headers whose values belong to the scope, such as the tenant's. Something in front must set or check them.
 *     Several lines of one are refused.
 * @param bodyComparison How the bodies of two requests with one ID are compared.
 * @param maxRequestBody Largest request body. A larger request gets 413.
 * @param maxResponseBody Largest response body that is stored. A larger one is sent, but a retry cannot get it.
 * @param maxMemory Memory that all protected requests may hold together. Default: a quarter of the heap.
 * @param maxFormParameters Largest number of parameters of a form. Default: that of the container, as server.tomcat.* or server.jetty.* sets it.
 * @param maxFormSize Largest form. Default: that of the container, as server.tomcat.* or server.jetty.* sets it.
 * @param maxWait Longest time that a duplicate may wait for the first attempt.
 * @param maxWaitingDuplicates How many duplicates may wait at once.
 * @param keepHeaders Response headers to store and replay, besides the standard ones.
 * @param problemBase Prefix of the type of refusals.
 * @param filterOrder Order of the filter among the filters of the application. Default: behind all others.
 * @param header The allowed form of the ID.
 * @param policy How long claims and records live, and what happens after a failure or a crash.
 * @param redis Settings of the storage in Redis.
 * @param jdbc Settings of the storage in a database.
 * @param memory Settings of the storage in memory.
 */
@ConfigurationProperties(prefix = IdempotenceServerProperties.PREFIX, ignoreUnknownFields = false)
public record IdempotenceServerProperties(
        @DefaultValue("true") boolean enabled,
        @DefaultValue("auto") Storage storage,
        @Nullable String storageBean,
        @Nullable String namespace,
        @DefaultValue List<String> paths,
        @DefaultValue({"POST", "PATCH"}) List<String> methods,
        @DefaultValue("false") boolean requireId,
        @DefaultValue("principal") Scope scope,
        @DefaultValue List<String> scopeHeaders,
        @DefaultValue("bytes") Comparison bodyComparison,
        @DefaultValue("10MB") DataSize maxRequestBody,
        @DefaultValue("1MB") DataSize maxResponseBody,
        @Nullable DataSize maxMemory,
        @Nullable Integer maxFormParameters,
        @Nullable DataSize maxFormSize,
        @DefaultValue("10s") Duration maxWait,
        @DefaultValue("10000") int maxWaitingDuplicates,
        @DefaultValue List<String> keepHeaders,
        @DefaultValue("urn:idempotence:problem:") URI problemBase,
        @Nullable Integer filterOrder,
        @DefaultValue Header header,
        @DefaultValue Policy policy,
        @DefaultValue RedisSettings redis,
        @DefaultValue Jdbc jdbc,
        @DefaultValue Memory memory) {
    static final String PREFIX = "idempotence.server";

    /** A value as it is written in a file of properties. */
    static String text(Enum<?> value) {
        return value.name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    /** The place of the records. */
    public enum Storage {
        /** In the application's Redis if it has one, else in memory. */
        AUTO,
        /** In Redis, through the {@code RedisConnectionFactory}. */
        REDIS,
        /** In Redis, through the application's Jedis client. */
        JEDIS,
        /** In the database of the {@code DataSource}. */
        JDBC,
        /** In this process's memory: for tests and trials. */
        MEMORY
    }

    /** The scope of an ID: to whom it belongs. */
    public enum Scope {
        /** The authenticated user, if there is one. */
        PRINCIPAL,
        /** Nobody: equal IDs of different users are one ID. */
        NONE
    }

    /** The comparison of two bodies. */
    public enum Comparison {
        /** Every byte. */
        BYTES,
        /** JSON without regard to white space and the order of members. */
        CANONICAL_JSON
    }

    /**
     * The allowed form of the ID.
     *
     * @param strict Whether the ID must be in quotes.
     * @param minLength Smallest number of characters.
     * @param maxLength Largest number of characters, at most 255.
     * @param acceptSpace Whether an ID in quotes may contain spaces.
     */
    public record Header(
            @DefaultValue("false") boolean strict,
            @DefaultValue("1") int minLength,
            @DefaultValue("255") int maxLength,
            @DefaultValue("false") boolean acceptSpace) {}

    /**
     * The policy of operations that have none of their own.
     *
     * @param lease How long a claim holds if its owner dies. It is renewed while the handler runs.
     * @param retention How long an ID is remembered.
     * @param failureRule Which failures keep the ID.
     * @param onAbandoned The treatment of an ID whose owner died. "re-execute" only for operations that are harmless to run twice.
     *     "recover" needs a rule, so it is not possible here.
     * @param completion When a result is recorded. "after-response" saves its caller the round trip: after a crash within those milliseconds
     *     the outcome is unknown. It cannot be combined with "re-execute".
     */
    public record Policy(
            @DefaultValue("30s") Duration lease,
            @DefaultValue("24h") Duration retention,
            @DefaultValue("release-on-system-failure") FailureRule failureRule,
            @DefaultValue("refuse") OnAbandoned onAbandoned,
            @DefaultValue("before-response") IdempotencePolicy.Completion completion) {}

    /**
     * The storage in Redis.
     *
     * @param timeout Longest time to wait for a reply, with Lettuce, 10ms to 1m. Jedis has its own timeouts.
     */
    public record RedisSettings(@DefaultValue("1s") Duration timeout) {}

    /**
     * The storage in a database.
     *
     * @param table Table of the records, with a schema if needed.
     * @param appliedTable Table of the marks of in-transaction mode.
     * @param createIfMissing Whether to create missing tables.
     * @param inTransaction Whether effects are marked in the business transaction. Needs the storage jdbc. It is never on by itself: after a crash without a
     *     mark, the operation runs again, so every effect of every protected handler and bean method must be in one such transaction.
     * @param statementTimeout Longest time of a statement.
     * @param cleanUpEvery How often expired rows are deleted. Zero turns it off.
     */
    public record Jdbc(
            @DefaultValue("idempotence_record") String table,
            @DefaultValue("idempotence_applied") String appliedTable,
            @DefaultValue("false") boolean createIfMissing,
            @DefaultValue("false") boolean inTransaction,
            @DefaultValue("2s") Duration statementTimeout,
            @DefaultValue("5m") Duration cleanUpEvery) {}

    /**
     * The storage in memory.
     *
     * @param forbiddenProfiles Profiles in which the application must not keep its records in memory: it does not start.
     */
    public record Memory(
            @DefaultValue({"prod", "production"}) List<String> forbiddenProfiles) {}
}
