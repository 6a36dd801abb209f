package io.idempotence.client;

import io.github.resilience4j.retry.RetryRegistry;
import io.idempotence.IdempotenceIdGenerator;
import io.idempotence.http.IdempotencyKeyHeader.Style;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Properties;
import java.util.concurrent.Executor;
import java.util.concurrent.ForkJoinPool;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * A builder of a config. Each setter checks its own value and throws {@link IdempotenceClientConfigException} if it is not allowed. {@link
 * #build()} checks whether the values contradict each other. Not thread-safe.
 */
public final class IdempotenceClientConfigBuilder {
    private final Map<ClientSetting<?>, SettingValue> values = new HashMap<>();
    private final Map<String, Map<ClientSetting<?>, SettingValue>> clients = new HashMap<>();
    private @Nullable RetryRegistry retryRegistry;
    private @Nullable IdempotenceClientListener listener;
    private @Nullable Executor executor;

    /** A builder with every default. */
    IdempotenceClientConfigBuilder() {}

    /** A builder that starts with these settings. */
    IdempotenceClientConfigBuilder(
            LayeredSettings settings,
            @Nullable RetryRegistry retryRegistry,
            @Nullable IdempotenceClientListener listener,
            Executor executor) {
        settings.copyTo(values, clients);
        this.retryRegistry = retryRegistry;
        this.listener = listener;
        this.executor = executor;
    }

    /** Sets what {@link IdempotenceClientConfig#load()} finds. */
    IdempotenceClientConfigBuilder load(ClassLoader classes, Properties system, Map<String, String> environment) {
        new SettingsLoader(values, clients).load(classes, system, environment);
        return this;
    }

    /**
     * Sets one setting by its key, as a configuration file has it. Setting it again overrides the earlier value.
     *
     * @param key with the prefix: {@code idempotence.client.deadline}. Spellings are relaxed: {@code idempotence.client.retry.maxAttempts}
     *     and the variable {@code IDEMPOTENCE_CLIENT_RETRY_MAXATTEMPTS} are {@code idempotence.client.retry.max-attempts}. The name of a
     *     client is taken as it is written, with or without brackets around it
     * @param value as in a file
     * @param source where it was read, for messages
     * @throws IdempotenceClientConfigException if the key lacks the prefix, or the setting is unknown or malformed
     */
    public IdempotenceClientConfigBuilder set(String key, String value, String source) {
        new SettingsLoader(values, clients)
                .relaxed(
                        Objects.requireNonNull(key, "key"),
                        Objects.requireNonNull(value, "value"),
                        Objects.requireNonNull(source, "source"));
        return this;
    }

    /**
     * Sets whether calls carry IDs. If not, they behave as if this library were absent, also with {@code @Idempotent}: an {@code
     * Idempotency-Key} header of the caller is sent as it is.
     *
     * @param enabled true by default
     */
    public IdempotenceClientConfigBuilder enabled(boolean enabled) {
        return put(ClientSetting.ENABLED, enabled);
    }

    /**
     * Sets the spelling of the ID on the wire.
     *
     * @param style quoted by default
     */
    public IdempotenceClientConfigBuilder headerStyle(Style style) {
        return put(ClientSetting.HEADER_STYLE, style);
    }

    /**
     * Sets the HTTP methods that carry an ID without {@code @Idempotent}.
     *
     * @param methods some of POST, PATCH, PUT, DELETE; POST and PATCH by default
     */
    public IdempotenceClientConfigBuilder methods(String... methods) {
        return put(
                ClientSetting.METHODS,
                Arrays.stream(methods).map(m -> m.toUpperCase(Locale.ROOT)).collect(Collectors.toUnmodifiableSet()));
    }

    /**
     * Sets the generator of the IDs of new calls, instead of {@code generator.type}.
     *
     * @param generator thread-safe; random UUIDs by default
     */
    public IdempotenceClientConfigBuilder generator(IdempotenceIdGenerator generator) {
        return put(ClientSetting.GENERATOR, generator);
    }

    /**
     * Sets the time that a logical call may take, from its start: all attempts and waits.
     *
     * @param deadline above 0, at most 1 day, and shorter than {@link #serverRetention}; 10 s by default
     */
    public IdempotenceClientConfigBuilder deadline(Duration deadline) {
        return put(ClientSetting.DEADLINE, deadline);
    }

    /**
     * Sets the largest number of attempts, the first one included.
     *
     * @param attempts 1 to 100; 3 by default
     */
    public IdempotenceClientConfigBuilder maxAttempts(int attempts) {
        return put(ClientSetting.MAX_ATTEMPTS, attempts);
    }

    /**
     * Sets the bound of the wait before attempt 2.
     *
     * @param wait 0 to 1 day, at most {@link #maxWait}; 100 ms by default
     */
    public IdempotenceClientConfigBuilder waitBound(Duration wait) {
        return put(ClientSetting.WAIT, wait);
    }

    /**
     * Sets the factor from one bound to the next.
     *
     * @param multiplier 1 to 100; 2 by default
     */
    public IdempotenceClientConfigBuilder multiplier(double multiplier) {
        return put(ClientSetting.MULTIPLIER, multiplier);
    }

    /**
     * Sets the largest bound.
     *
     * @param wait the first bound to 1 day; 2 s by default
     */
    public IdempotenceClientConfigBuilder maxWait(Duration wait) {
        return put(ClientSetting.MAX_WAIT, wait);
    }

    /**
     * Sets the share of the bound that is random.
     *
     * @param jitter 0 to 1; 1 by default
     */
    public IdempotenceClientConfigBuilder jitter(double jitter) {
        return put(ClientSetting.JITTER, jitter);
    }

    /**
     * Sets the statuses that are retried. A status that is not listed ends the call. An unlisted 5xx other than 500, 501, 503 and 505 ends
     * it with an unknown outcome. While an earlier attempt is in doubt, so does each unlisted status that does not show the outcome of the
     * earlier attempt ({@code docs/outcomes.md} lists those that do), and a 409 is retried. Refusals of the server half and replays do not
     * depend on this setting.
     *
     * @param statuses 400 to 599; 408, 425, 429, 500, 502, 503, 504 by default
     */
    public IdempotenceClientConfigBuilder statuses(int... statuses) {
        return put(ClientSetting.STATUSES, Arrays.stream(statuses).boxed().collect(Collectors.toUnmodifiableSet()));
    }

    /**
     * Sets how long the server may hold a duplicate of a running request.
     *
     * @param wait 0 to 1 day, rounded up to whole seconds, and at most the whole seconds of the read timeout less 500 ms; 5 s
     *     by default; zero sends no preference
     */
    public IdempotenceClientConfigBuilder preferWait(Duration wait) {
        return put(ClientSetting.PREFER_WAIT, wait);
    }

    /**
     * Sets the retry budget of each client.
     *
     * @param capacity the number of tokens at the start, and the largest number, 0 to 1,000,000; 500 by default, 0 means no retries
     * @param cost tokens that a retry costs, 0 to the capacity; 5 by default, 0 means no limit
     * @param refund tokens that a success refunds, 0 to 1,000,000; 1 by default
     */
    public IdempotenceClientConfigBuilder budget(int capacity, int cost, int refund) {
        put(ClientSetting.BUDGET_CAPACITY, capacity);
        put(ClientSetting.BUDGET_COST, cost);
        return put(ClientSetting.BUDGET_REFUND, refund);
    }

    /**
     * Sets other settings for one client, or for one of its methods.
     *
     * @param name the client's name, for Feign {@code Target.name()}; or {@code name#method}, which cannot have a budget
     * @param settings sets them, on a builder of its own. Registry, listener, executor and other clients belong to the outer builder
     * @throws IdempotenceClientConfigException if {@code settings} sets something that belongs to the outer builder
     */
    public IdempotenceClientConfigBuilder client(String name, Consumer<IdempotenceClientConfigBuilder> settings) {
        IdempotenceClientConfigBuilder own = new IdempotenceClientConfigBuilder();
        settings.accept(own);
        if (own.retryRegistry != null || own.listener != null || own.executor != null || !own.clients.isEmpty()) {
            throw new IdempotenceClientConfigException(
                    "client " + name,
                    SettingValue.BUILDER,
                    "registry, listener, executor and other clients are set on the outer builder");
        }
        clients.computeIfAbsent(Objects.requireNonNull(name, "name"), absent -> new HashMap<>())
                .putAll(own.values);
        return this;
    }

    /**
     * Sets the registry in which a retry is looked up at every call: {@code <client>#<method>}, then {@code <client>}, then {@code
     * idempotence}. Only existing instances are used. The instance that is found is replaced in the registry by one that also obeys the
     * deadline, the budget, Retry-After and the outcome of the attempt. Outside of the client half, the new instance behaves like the old
     * one, and its events also reach the consumers of the old one. Its exception predicate can forbid a retry but cannot force one. Its
     * result predicate is not used.
     *
     * @param registry the application's
     */
    public IdempotenceClientConfigBuilder retryRegistry(RetryRegistry registry) {
        this.retryRegistry = Objects.requireNonNull(registry, "registry");
        return this;
    }

    /**
     * Sets the listener for attempts and ended calls.
     *
     * @param listener thread-safe
     */
    public IdempotenceClientConfigBuilder listener(IdempotenceClientListener listener) {
        this.listener = Objects.requireNonNull(listener, "listener");
        return this;
    }

    /**
     * Sets how long the server half remembers an ID.
     *
     * @param time the provider's retention, longer than the deadline, at most 3650 days; 24 h by default
     */
    public IdempotenceClientConfigBuilder serverRetention(Duration time) {
        return put(ClientSetting.SERVER_RETENTION, time);
    }

    /**
     * Sets the executor that starts the second and later attempts of calls that return a future. The first attempt starts in the caller's
     * thread. The executor must carry the thread-locals that interceptors need, such as a security context. If the HTTP client blocks, the
     * executor's threads must be allowed to block.
     *
     * @param executor the common fork-join pool by default. If it rejects an attempt, the call ends as if no attempts were left. If it
     *     drops one, the call ends 250 ms after the deadline
     */
    public IdempotenceClientConfigBuilder executor(Executor executor) {
        this.executor = Objects.requireNonNull(executor, "executor");
        return this;
    }

    /**
     * Builds the config.
     *
     * @return an immutable config
     * @throws IdempotenceClientConfigException if settings contradict each other, in common or for one client
     */
    public IdempotenceClientConfig build() {
        LayeredSettings settings = new LayeredSettings(values, clients);
        return new IdempotenceClientConfig(
                settings,
                retryRegistry,
                listener,
                Objects.requireNonNullElseGet(executor, ForkJoinPool::commonPool),
                new RetryBudgets(settings));
    }

    private <T> IdempotenceClientConfigBuilder put(ClientSetting<T> setting, T value) {
        T checked = setting.check(Objects.requireNonNull(value, "value"), setting.propertyName(), SettingValue.BUILDER);
        values.put(setting, new SettingValue(checked, setting.propertyName(), SettingValue.BUILDER));
        return this;
    }
}
