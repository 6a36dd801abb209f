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
 * How the client half behaves.
 *
 * <p>Settings, with their defaults, under the prefix {@code idempotence.client.}:
 *
 * <table>
 * <caption>Settings</caption>
 * <tr><th>key</th><th>default</th><th>meaning</th></tr>
 * <tr><td>{@code header-style}</td><td>quoted</td><td>spelling of the ID on the wire: quoted or bare</td></tr>
 * <tr><td>{@code methods}</td><td>POST, PATCH</td><td>HTTP methods that carry an ID without {@code @Idempotent}</td></tr>
 * <tr><td>{@code generator.type}</td><td>uuid</td><td>uuid, application (needs {@code generator.application}) or snowflake
 * (needs {@code generator.node})</td></tr>
 * <tr><td>{@code deadline}</td><td>10s</td><td>all attempts of a logical call with the waits between them</td></tr>
 * <tr><td>{@code retry.max-attempts}</td><td>3</td><td>the first attempt counts</td></tr>
 * <tr><td>{@code retry.wait}</td><td>100ms</td><td>bound of the wait before attempt 2</td></tr>
 * <tr><td>{@code retry.multiplier}</td><td>2</td><td>growth of that bound</td></tr>
 * <tr><td>{@code retry.max-wait}</td><td>2s</td><td>where the bound stops growing</td></tr>
 * <tr><td>{@code retry.jitter}</td><td>1.0</td><td>the share of the bound that is random: 1.0 waits 0 to the bound, 0 waits
 * the bound</td></tr>
 * <tr><td>{@code retry.statuses}</td><td>408, 425, 429, 500, 502, 503, 504</td><td>statuses that are retried</td></tr>
 * <tr><td>{@code in-progress.prefer-wait}</td><td>5s</td><td>how long the server is asked to hold a duplicate of a running
 * request; whole seconds, cut to half a second below the read timeout, which itself is cut to what is left of the deadline; 0s
 * asks for none</td></tr>
 * <tr><td>{@code budget.capacity}, {@code .cost}, {@code .refund}</td><td>500, 5, 1</td><td>see {@link RetryBudget}</td></tr>
 * <tr><td>{@code server-retention}</td><td>24h</td><td>how long the server half remembers an ID; the deadline must be
 * shorter</td></tr>
 * <tr><td>{@code clients.<name>.<key>}</td><td></td><td>any of these for one client</td></tr>
 * <tr><td>{@code clients.<name>#<method>.<key>}</td><td></td><td>any of these but the budget for one method, by its name</td></tr>
 * </table>
 *
 * <p>Durations are written {@code 100ms}, {@code 10s}, {@code 2m}, {@code 1h} or in ISO-8601. The retry settings make the
 * default policy; an instance in the {@link Builder#retryRegistry registry} replaces them for what it is named after.
 *
 * <p>Code wins over what was loaded: {@code IdempotenceClientConfig.load().toBuilder().deadline(...).build()}.
 *
 * <p>Immutable and thread-safe, but for the retry budgets, which live as long as this object.
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

    /** {@return every default, nothing loaded} */
    public static IdempotenceClientConfig defaults() {
        return builder().build();
    }

    /**
     * {@code idempotence.properties} on the classpath, then system properties, then environment variables; the later wins.
     * The environment spells {@code retry.max-attempts} as {@code IDEMPOTENCE_CLIENT_RETRY_MAX_ATTEMPTS}, and has none for one client.
     *
     * @return the config
     * @throws IdempotenceConfigException if a setting is unknown, malformed, or does not fit the others
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

    /** {@return a builder that begins with these settings; its config has retry budgets of its own} */
    public Builder toBuilder() {
        Builder builder = new Builder();
        settings.copyTo(builder.values, builder.clients);
        builder.retryRegistry = retryRegistry;
        builder.listener = listener;
        builder.executor = executor;
        return builder;
    }

    /**
     * These settings as they are for one client: its own laid over the common ones. Budgets stay shared.
     *
     * @param client the client's name, for Feign {@code Target.name()}
     * @return its config
     */
    public IdempotenceClientConfig forClient(String client) {
        return with(settings.forClient(client));
    }

    /**
     * These settings as they are for one method: those given for {@code <client>#<method>} laid over the client's.
     *
     * @param client the client's name, for Feign {@code Target.name()}
     * @param method the method's name; overloads share it
     * @return its config
     */
    public IdempotenceClientConfig forMethod(String client, String method) {
        return with(settings.forMethod(client, method));
    }

    /** {@return the retry budget of a client; beyond 1000 names, those without settings of their own share one} */
    public RetryBudget budget(String target) {
        return budgets.of(target);
    }

    /** {@return how the ID is spelled on the wire; quoted by default} */
    public Style headerStyle() {
        return settings.get(ConfigKey.HEADER_STYLE);
    }

    /** {@return the HTTP methods that carry an ID without {@code @Idempotent}; POST and PATCH by default} */
    public Set<String> methods() {
        return settings.get(ConfigKey.METHODS);
    }

    /** {@return what makes the IDs of new calls; random UUIDs by default} */
    public IdempotenceIdGenerator generator() {
        return settings.generator();
    }

    /** {@return the time a logical call has, from its opening; 10 s by default} */
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

    /** {@return what the bound is multiplied with from wait to wait; 2 by default} */
    public double multiplier() {
        return settings.get(ConfigKey.MULTIPLIER);
    }

    /** {@return where the bound stops growing; 2 s by default} */
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

    /** {@return how long the server is asked to hold a duplicate of a running request; 5 s by default; zero asks for none} */
    public Duration preferWait() {
        return settings.get(ConfigKey.PREFER_WAIT);
    }

    /** {@return how long the server half remembers an ID; {@link IdempotenceScope#resume} refuses after it; 24 h by default, as there} */
    public Duration serverRetention() {
        return settings.get(ConfigKey.SERVER_RETENTION);
    }

    /** {@return the Resilience4j registry that is asked for retries; empty by default} */
    public Optional<RetryRegistry> retryRegistry() {
        return Optional.ofNullable(retryRegistry);
    }

    /** {@return what hears how every logical call ended; empty by default} */
    public Optional<IdempotenceClientListener> listener() {
        return Optional.ofNullable(listener);
    }

    /** {@return what begins the second and later attempts of calls that return a future; the common fork-join pool by default} */
    public Executor executor() {
        return executor;
    }

    /**
     * Collects settings. Each setter checks its own value and throws {@link IdempotenceConfigException} if it is not allowed;
     * {@link #build()} checks how they fit. Not thread-safe.
     */
    public static final class Builder {
        private final Map<ConfigKey<?>, Setting> values = new HashMap<>();
        private final Map<String, Map<ConfigKey<?>, Setting>> clients = new HashMap<>();
        private @Nullable RetryRegistry retryRegistry;
        private @Nullable IdempotenceClientListener listener;
        private Executor executor = ForkJoinPool.commonPool();

        private Builder() {}

        /**
         * How the ID is spelled on the wire.
         *
         * @param style quoted by default
         * @return this builder
         */
        public Builder headerStyle(Style style) {
            return put(ConfigKey.HEADER_STYLE, style);
        }

        /**
         * The HTTP methods that carry an ID without {@code @Idempotent}.
         *
         * @param methods of POST, PATCH, PUT, DELETE; POST and PATCH by default
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
         * Makes the IDs of new calls, in place of {@code generator.type}.
         *
         * @param generator thread-safe; random UUIDs by default
         * @return this builder
         */
        public Builder generator(IdempotenceIdGenerator generator) {
            return put(ConfigKey.GENERATOR, generator);
        }

        /**
         * The time a logical call has, from its opening, attempts and waits together.
         *
         * @param deadline above 0; 10 s by default
         * @return this builder
         */
        public Builder deadline(Duration deadline) {
            return put(ConfigKey.DEADLINE, deadline);
        }

        /**
         * The greatest number of attempts, the first one included.
         *
         * @param attempts 1 to 100; 3 by default
         * @return this builder
         */
        public Builder maxAttempts(int attempts) {
            return put(ConfigKey.MAX_ATTEMPTS, attempts);
        }

        /**
         * The bound of the wait before attempt 2.
         *
         * @param wait 0 or more; 100 ms by default
         * @return this builder
         */
        public Builder waitBound(Duration wait) {
            return put(ConfigKey.WAIT, wait);
        }

        /**
         * What the bound is multiplied with from wait to wait.
         *
         * @param multiplier 1 to 100; 2 by default
         * @return this builder
         */
        public Builder multiplier(double multiplier) {
            return put(ConfigKey.MULTIPLIER, multiplier);
        }

        /**
         * Where the bound stops growing.
         *
         * @param wait at least the first bound; 2 s by default
         * @return this builder
         */
        public Builder maxWait(Duration wait) {
            return put(ConfigKey.MAX_WAIT, wait);
        }

        /**
         * The share of the bound that is random.
         *
         * @param jitter 0 to 1; 1 by default
         * @return this builder
         */
        public Builder jitter(double jitter) {
            return put(ConfigKey.JITTER, jitter);
        }

        /**
         * The statuses that are retried. A status left out ends the call: as unknown, if it is a 5xx except 500, 501, 503 and 505.
         *
         * @param statuses 400 to 599; 408, 425, 429, 500, 502, 503, 504 by default
         * @return this builder
         */
        public Builder statuses(int... statuses) {
            return put(ConfigKey.STATUSES, Arrays.stream(statuses).boxed().collect(Collectors.toUnmodifiableSet()));
        }

        /**
         * How long the server is asked to hold a duplicate of a running request.
         *
         * @param wait 5 s by default; zero asks for none
         * @return this builder
         */
        public Builder preferWait(Duration wait) {
            return put(ConfigKey.PREFER_WAIT, wait);
        }

        /**
         * The retry budget of each target.
         *
         * @param capacity tokens at the start and at most; 500 by default, 0 means no retries
         * @param cost tokens a retry costs; 5 by default, 0 means no limit
         * @param refund tokens a success gives back; 1 by default
         * @return this builder
         */
        public Builder budget(int capacity, int cost, int refund) {
            put(ConfigKey.BUDGET_CAPACITY, capacity);
            put(ConfigKey.BUDGET_COST, cost);
            return put(ConfigKey.BUDGET_REFUND, refund);
        }

        /**
         * Other settings for one client.
         *
         * @param name the client's name, for Feign {@code Target.name()}
         * @param settings sets them; registry, listener and executor cannot differ by client and are ignored here
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
         * Where retries are looked up at every call: {@code <client>#<method>}, then {@code <client>}, then {@code
         * idempotence}; only instances that exist are used. An instance found is replaced in the registry by one that also
         * obeys deadline, budget, Retry-After and what happened to the attempt; for calls that are not ours it behaves as
         * before, and its events also reach the consumers of the instance it replaced. Its predicate can forbid a retry, not
         * force one. Its result predicate is not asked: a response is a response.
         *
         * @param registry the application's
         * @return this builder
         */
        public Builder retryRegistry(RetryRegistry registry) {
            this.retryRegistry = Objects.requireNonNull(registry, "registry");
            return this;
        }

        /**
         * Hears how every logical call ended.
         *
         * @param listener thread-safe
         * @return this builder
         */
        public Builder listener(IdempotenceClientListener listener) {
            this.listener = Objects.requireNonNull(listener, "listener");
            return this;
        }

        /**
         * How long the server half remembers an ID.
         *
         * @param time the provider's retention, 24 h by default; longer than the deadline
         * @return this builder
         */
        public Builder serverRetention(Duration time) {
            return put(ConfigKey.SERVER_RETENTION, time);
        }

        /**
         * Begins the second and later attempts of calls that return a future; the first begins in the caller's thread. Bring one
         * that hands on what interceptors find in thread-locals, such as a security context, or that may block, if the HTTP
         * client does.
         *
         * @param executor the common fork-join pool by default; if it rejects an attempt, the call ends as if attempts were over,
         *     and half a second after the deadline if it drops one
         * @return this builder
         */
        public Builder executor(Executor executor) {
            this.executor = Objects.requireNonNull(executor, "executor");
            return this;
        }

        /**
         * The config.
         *
         * @return immutable
         * @throws IdempotenceConfigException if settings do not fit each other, in common or for one client
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
