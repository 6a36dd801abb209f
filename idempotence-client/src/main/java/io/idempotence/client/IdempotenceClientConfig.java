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
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.Executor;
import java.util.concurrent.ForkJoinPool;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * The settings of the client half.
 *
 * <p>Settings, with their defaults, under the prefix {@code idempotence.client.}:
 *
 * <table>
 * <caption>Settings</caption>
 * <tr><th>key</th><th>default</th><th>meaning</th></tr>
 * <tr><td>{@code enabled}</td><td>true</td><td>whether calls carry IDs; false: as if this library were absent</td></tr>
 * <tr><td>{@code header-style}</td><td>quoted</td><td>spelling of the ID on the wire: quoted or bare</td></tr>
 * <tr><td>{@code methods}</td><td>POST, PATCH</td><td>HTTP methods that carry an ID without {@code @Idempotent}</td></tr>
 * <tr><td>{@code generator.type}</td><td>uuid</td><td>uuid, application or snowflake ({@code .application}, {@code .node})</td></tr>
 * <tr><td>{@code deadline}</td><td>10s</td><td>the time for a whole call: all attempts and waits</td></tr>
 * <tr><td>{@code retry.max-attempts}</td><td>3</td><td>attempts, the first one included</td></tr>
 * <tr><td>{@code retry.wait}</td><td>100ms</td><td>upper bound of the wait before attempt 2</td></tr>
 * <tr><td>{@code retry.multiplier}</td><td>2</td><td>factor from one bound to the next</td></tr>
 * <tr><td>{@code retry.max-wait}</td><td>2s</td><td>the largest bound</td></tr>
 * <tr><td>{@code retry.jitter}</td><td>1.0</td><td>the random share of the bound: 1.0 waits 0 to the bound</td></tr>
 * <tr><td>{@code retry.statuses}</td><td>408, 425, 429, 500, 502, 503, 504</td><td>statuses that are retried</td></tr>
 * <tr><td>{@code in-progress.prefer-wait}</td><td>5s</td><td>how long the server may hold a duplicate of a running request, in
 * whole seconds. Cut to half a second below the read timeout, which itself is cut to what is left of the deadline. 0s sends no
 * preference</td></tr>
 * <tr><td>{@code budget.capacity}, {@code .cost}, {@code .refund}</td><td>500, 5, 1</td><td>see {@link RetryBudget}</td></tr>
 * <tr><td>{@code server-retention}</td><td>24h</td><td>how long the server half remembers an ID; the deadline must be
 * shorter</td></tr>
 * <tr><td>{@code clients.<name>.<key>}</td><td></td><td>any key above, for one client</td></tr>
 * <tr><td>{@code clients.<name>#<method>.<key>}</td><td></td><td>any key above except the budget, for one method</td></tr>
 * </table>
 *
 * <p>Durations are written {@code 100ms}, {@code 10s}, {@code 2m}, {@code 1h}, {@code 7d} or in ISO-8601. The retry settings form the
 * default policy. An instance in the {@link Builder#retryRegistry registry} replaces them for the client or method whose name
 * it has.
 *
 * <p>Code overrides loaded settings: {@code IdempotenceClientConfig.load().toBuilder().deadline(...).build()}.
 *
 * <p>Immutable and thread-safe, except for the retry budgets, which live as long as this object.
 */
public final class IdempotenceClientConfig {
    private final LayeredSettings settings;
    private final @Nullable RetryRegistry retryRegistry;
    private final @Nullable IdempotenceClientListener listener;
    private final Executor executor;
    private final RetryBudgets budgets;

    private IdempotenceClientConfig(
            LayeredSettings settings,
            @Nullable RetryRegistry retryRegistry,
            @Nullable IdempotenceClientListener listener,
            Executor executor,
            RetryBudgets budgets) {
        this.settings = settings;
        this.retryRegistry = retryRegistry;
        this.listener = listener;
        this.executor = executor;
        this.budgets = budgets;
    }

    private IdempotenceClientConfig with(LayeredSettings own) {
        return new IdempotenceClientConfig(own, retryRegistry, listener, executor, budgets);
    }

    /** {@return a config with every default, nothing loaded} */
    public static IdempotenceClientConfig defaults() {
        return builder().build();
    }

    /**
     * Loads {@code idempotence.properties} on the class path, then system properties, then environment variables. A later source overrides
     * an earlier one. The environment spells {@code retry.max-attempts} as {@code IDEMPOTENCE_CLIENT_RETRY_MAX_ATTEMPTS}. It has no
     * variables for a single client.
     *
     * @return the config
     * @throws IdempotenceConfigException if a setting is unknown or malformed, or contradicts another
     */
    public static IdempotenceClientConfig load() {
        ClassLoader context = Thread.currentThread().getContextClassLoader();
        ClassLoader own = IdempotenceClientConfig.class.getClassLoader();
        return load(
                context != null && context.getResource(ConfigLoader.FILE) != null ? context : own,
                System.getProperties(),
                System.getenv());
    }

    static IdempotenceClientConfig load(ClassLoader classes, Properties system, Map<String, String> environment) {
        Builder builder = new Builder();
        new ConfigLoader(builder.values, builder.clients).load(classes, system, environment);
        return builder.build();
    }

    /** {@return a builder with every default and nothing loaded} */
    public static Builder builder() {
        return new Builder();
    }

    /** {@return a builder that starts with these settings; its config has retry budgets of its own} */
    public Builder toBuilder() {
        Builder builder = new Builder();
        settings.copyTo(builder.values, builder.clients);
        builder.retryRegistry = retryRegistry;
        builder.listener = listener;
        builder.executor = executor;
        return builder;
    }

    /**
     * The settings of one client: its own override the common ones. Budgets are shared.
     *
     * @param client the client's name, for Feign {@code Target.name()}
     * @return its config
     */
    public IdempotenceClientConfig forClient(String client) {
        return with(settings.forClient(client));
    }

    /**
     * The settings of one method: those of {@code <client>#<method>} override the client's.
     *
     * @param client the client's name, for Feign {@code Target.name()}
     * @param method the method's name; overloads share it
     * @return its config
     */
    public IdempotenceClientConfig forMethod(String client, String method) {
        return with(settings.forMethod(client, method));
    }

    /** {@return whether the client, or this method of it, has settings of its own} */
    public boolean isNamed(String client, String method) {
        return settings.hasClient(client) || settings.hasClient(client + "#" + method);
    }

    /** {@return the retry budget of a target; beyond 1,000 targets, all others without settings of their own share one} */
    public RetryBudget budget(String target) {
        return budgets.of(target);
    }

    /** {@return whether calls may carry an ID; true by default} */
    public boolean enabled() {
        return settings.get(ConfigKey.ENABLED);
    }

    /** {@return the spelling of the ID on the wire; quoted by default} */
    public Style headerStyle() {
        return settings.get(ConfigKey.HEADER_STYLE);
    }

    /** {@return the HTTP methods that carry an ID without {@code @Idempotent}; POST and PATCH by default} */
    public Set<String> methods() {
        return settings.get(ConfigKey.METHODS);
    }

    /** {@return the generator of the IDs of new calls; random UUIDs by default} */
    public IdempotenceIdGenerator generator() {
        return settings.generator();
    }

    /** {@return the time that a logical call may take, from its start; 10 s by default} */
    public Duration deadline() {
        return settings.get(ConfigKey.DEADLINE);
    }

    /** {@return the greatest number of attempts; 3 by default} */
    public int maxAttempts() {
        return settings.get(ConfigKey.MAX_ATTEMPTS);
    }

    /** {@return the bound of the wait before attempt 2; 100 ms by default} */
    public Duration waitBound() {
        return settings.get(ConfigKey.WAIT);
    }

    /** {@return the factor from one bound to the next; 2 by default} */
    public double multiplier() {
        return settings.get(ConfigKey.MULTIPLIER);
    }

    /** {@return the largest bound; 2 s by default} */
    public Duration maxWait() {
        return settings.get(ConfigKey.MAX_WAIT);
    }

    /** {@return the share of the bound that is random; 1 by default: waits from 0 to the bound} */
    public double jitter() {
        return settings.get(ConfigKey.JITTER);
    }

    /** {@return the statuses that are retried; 408, 425, 429, 500, 502, 503, 504 by default} */
    public Set<Integer> statuses() {
        return settings.get(ConfigKey.STATUSES);
    }

    /** {@return how long the server may hold a duplicate of a running request; 5 s by default; zero sends no preference} */
    public Duration preferWait() {
        return settings.get(ConfigKey.PREFER_WAIT);
    }

    /** {@return how long the server half remembers an ID, 24 h by default; {@link IdempotenceScope#resume} refuses older ones} */
    public Duration serverRetention() {
        return settings.get(ConfigKey.SERVER_RETENTION);
    }

    /** {@return the Resilience4j registry in which retries are looked up; empty by default} */
    public Optional<RetryRegistry> retryRegistry() {
        return Optional.ofNullable(retryRegistry);
    }

    /** {@return the listener for attempts and ended calls; empty by default} */
    public Optional<IdempotenceClientListener> listener() {
        return Optional.ofNullable(listener);
    }

    /** {@return the executor of later attempts of calls that return a future; the common fork-join pool by default} */
    public Executor executor() {
        return executor;
    }

    /**
     * A builder of a config. Each setter checks its own value and throws {@link IdempotenceConfigException} if it is not allowed. {@link
     * #build()} checks whether the values contradict each other. Not thread-safe.
     */
    public static final class Builder {
        private final Map<ConfigKey<?>, Setting> values = new HashMap<>();
        private final Map<String, Map<ConfigKey<?>, Setting>> clients = new HashMap<>();
        private @Nullable RetryRegistry retryRegistry;
        private @Nullable IdempotenceClientListener listener;
        private Executor executor = ForkJoinPool.commonPool();

        private Builder() {}

        /**
         * Sets one setting by its key, as a configuration file has it. Setting it again overrides the earlier value.
         *
         * @param key with the prefix: {@code idempotence.client.deadline}. Spellings are relaxed: {@code idempotence.client.retry.maxAttempts}
         *     and the variable {@code IDEMPOTENCE_CLIENT_RETRY_MAXATTEMPTS} are {@code idempotence.client.retry.max-attempts}. The name of a
         *     client is taken as it is written, with or without brackets around it
         * @param value as in a file
         * @param source where it was read, for messages
         * @return this builder
         * @throws IdempotenceConfigException if the setting is unknown or malformed
         */
        public Builder set(String key, String value, String source) {
            new ConfigLoader(values, clients)
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
         * @return this builder
         */
        public Builder enabled(boolean enabled) {
            return put(ConfigKey.ENABLED, enabled);
        }

        /**
         * Sets the spelling of the ID on the wire.
         *
         * @param style quoted by default
         * @return this builder
         */
        public Builder headerStyle(Style style) {
            return put(ConfigKey.HEADER_STYLE, style);
        }

        /**
         * Sets the HTTP methods that carry an ID without {@code @Idempotent}.
         *
         * @param methods some of POST, PATCH, PUT, DELETE; POST and PATCH by default
         * @return this builder
         */
        public Builder methods(String... methods) {
            return put(
                    ConfigKey.METHODS,
                    Arrays.stream(methods)
                            .map(m -> m.toUpperCase(Locale.ROOT))
                            .collect(Collectors.toUnmodifiableSet()));
        }

        /**
         * Sets the generator of the IDs of new calls, instead of {@code generator.type}.
         *
         * @param generator thread-safe; random UUIDs by default
         * @return this builder
         */
        public Builder generator(IdempotenceIdGenerator generator) {
            return put(ConfigKey.GENERATOR, generator);
        }

        /**
         * Sets the time that a logical call may take, from its start: all attempts and waits.
         *
         * @param deadline above 0; 10 s by default
         * @return this builder
         */
        public Builder deadline(Duration deadline) {
            return put(ConfigKey.DEADLINE, deadline);
        }

        /**
         * Sets the largest number of attempts, the first one included.
         *
         * @param attempts 1 to 100; 3 by default
         * @return this builder
         */
        public Builder maxAttempts(int attempts) {
            return put(ConfigKey.MAX_ATTEMPTS, attempts);
        }

        /**
         * Sets the bound of the wait before attempt 2.
         *
         * @param wait 0 or more; 100 ms by default
         * @return this builder
         */
        public Builder waitBound(Duration wait) {
            return put(ConfigKey.WAIT, wait);
        }

        /**
         * Sets the factor from one bound to the next.
         *
         * @param multiplier 1 to 100; 2 by default
         * @return this builder
         */
        public Builder multiplier(double multiplier) {
            return put(ConfigKey.MULTIPLIER, multiplier);
        }

        /**
         * Sets the largest bound.
         *
         * @param wait at least the first bound; 2 s by default
         * @return this builder
         */
        public Builder maxWait(Duration wait) {
            return put(ConfigKey.MAX_WAIT, wait);
        }

        /**
         * Sets the share of the bound that is random.
         *
         * @param jitter 0 to 1; 1 by default
         * @return this builder
         */
        public Builder jitter(double jitter) {
            return put(ConfigKey.JITTER, jitter);
        }

        /**
         * Sets the statuses that are retried. A status that is not listed ends the call. A 5xx except 500, 501, 503 and 505 then ends it as
         * unknown.
         *
         * @param statuses 400 to 599; 408, 425, 429, 500, 502, 503, 504 by default
         * @return this builder
         */
        public Builder statuses(int... statuses) {
            return put(ConfigKey.STATUSES, Arrays.stream(statuses).boxed().collect(Collectors.toUnmodifiableSet()));
        }

        /**
         * Sets how long the server may hold a duplicate of a running request.
         *
         * @param wait 5 s by default; zero sends no preference
         * @return this builder
         */
        public Builder preferWait(Duration wait) {
            return put(ConfigKey.PREFER_WAIT, wait);
        }

        /**
         * Sets the retry budget of each target.
         *
         * @param capacity the number of tokens at the start, and the largest number; 500 by default, 0 means no retries
         * @param cost tokens that a retry costs; 5 by default, 0 means no limit
         * @param refund tokens that a success refunds; 1 by default
         * @return this builder
         */
        public Builder budget(int capacity, int cost, int refund) {
            put(ConfigKey.BUDGET_CAPACITY, capacity);
            put(ConfigKey.BUDGET_COST, cost);
            return put(ConfigKey.BUDGET_REFUND, refund);
        }

        /**
         * Sets other settings for one client.
         *
         * @param name the client's name, for Feign {@code Target.name()}
         * @param settings sets them; registry, listener and executor are common to all clients and are ignored here
         * @return this builder
         */
        public Builder client(String name, Consumer<Builder> settings) {
            Builder own = new Builder();
            settings.accept(own);
            clients.computeIfAbsent(Objects.requireNonNull(name, "name"), absent -> new HashMap<>())
                    .putAll(own.values);
            return this;
        }

        /**
         * Sets the registry in which a retry is looked up at every call: {@code <client>#<method>}, then {@code <client>}, then {@code
         * idempotence}. Only existing instances are used. The instance found is replaced in the registry by one that also obeys deadline,
         * budget, Retry-After and the outcome of the attempt. For other calls it behaves as before, and its events also reach the consumers
         * of the replaced instance. Its exception predicate can forbid a retry but cannot force one. Its result predicate is not used.
         *
         * @param registry the application's
         * @return this builder
         */
        public Builder retryRegistry(RetryRegistry registry) {
            this.retryRegistry = Objects.requireNonNull(registry, "registry");
            return this;
        }

        /**
         * Sets the listener for attempts and ended calls.
         *
         * @param listener thread-safe
         * @return this builder
         */
        public Builder listener(IdempotenceClientListener listener) {
            this.listener = Objects.requireNonNull(listener, "listener");
            return this;
        }

        /**
         * Sets how long the server half remembers an ID.
         *
         * @param time the provider's retention, 24 h by default; longer than the deadline
         * @return this builder
         */
        public Builder serverRetention(Duration time) {
            return put(ConfigKey.SERVER_RETENTION, time);
        }

        /**
         * Sets the executor that starts the second and later attempts of calls that return a future. The first attempt starts in the
         * caller's thread. Pass one that carries the thread-locals that interceptors need, such as a security context, or whose threads may
         * block, if the HTTP client blocks.
         *
         * @param executor the common fork-join pool by default. If it rejects an attempt, the call ends as if no attempts were left. If it
         *     drops one, the call ends half a second after the deadline
         * @return this builder
         */
        public Builder executor(Executor executor) {
            this.executor = Objects.requireNonNull(executor, "executor");
            return this;
        }

        /**
         * Builds the config.
         *
         * @return an immutable config
         * @throws IdempotenceConfigException if settings contradict each other, in common or for one client
         */
        public IdempotenceClientConfig build() {
            LayeredSettings settings = new LayeredSettings(values, clients);
            return new IdempotenceClientConfig(settings, retryRegistry, listener, executor, new RetryBudgets(settings));
        }

        private <T> Builder put(ConfigKey<T> key, T value) {
            T checked = key.check(Objects.requireNonNull(value, "value"), key.propertyName(), Setting.BUILDER);
            values.put(key, new Setting(checked, key.propertyName(), Setting.BUILDER));
            return this;
        }
    }
}
