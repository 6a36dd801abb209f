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
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.Executor;
import java.util.concurrent.ForkJoinPool;
import java.util.function.Consumer;
import java.util.function.Function;
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
    private static final char METHOD_SEPARATOR = '#';

    /** Of targets without settings of their own: with OkHttp, hosts that anybody may have named. */
    private static final int MOST_BUDGETS = 1000;

    /** No target's name. */
    private static final String OTHER_TARGETS = "";

    private final @Nullable String client;
    private final Map<ConfigKey<?>, Setting> values;
    private final Map<String, Map<ConfigKey<?>, Setting>> clients;
    private final Map<String, Map<ConfigKey<?>, Setting>> environmentClients;
    private final @Nullable RetryRegistry retryRegistry;
    private final @Nullable IdempotenceClientListener listener;
    private final Executor executor;
    private final IdempotenceIdGenerator generator;
    private final ConcurrentMap<String, RetryBudget> budgets;

    private IdempotenceClientConfig(Builder builder) {
        this(
                null,
                Map.copyOf(builder.values),
                copy(builder.clients),
                copy(builder.environmentClients),
                builder.retryRegistry,
                builder.listener,
                builder.executor,
                new ConcurrentHashMap<>());
        for (String client : clients.keySet()) {
            int separator = client.indexOf(METHOD_SEPARATOR);
            if (separator < 0) {
                forClient(client);
            } else {
                forMethod(client.substring(0, separator), client.substring(separator + 1));
            }
        }
        for (String client : environmentClients.keySet()) {
            forClient(client);
        }
    }

    private IdempotenceClientConfig(
            @Nullable String client,
            Map<ConfigKey<?>, Setting> values,
            Map<String, Map<ConfigKey<?>, Setting>> clients,
            Map<String, Map<ConfigKey<?>, Setting>> environmentClients,
            @Nullable RetryRegistry retryRegistry,
            @Nullable IdempotenceClientListener listener,
            Executor executor,
            ConcurrentMap<String, RetryBudget> budgets) {
        this.client = client;
        this.values = values;
        this.clients = clients;
        this.environmentClients = environmentClients;
        this.retryRegistry = retryRegistry;
        this.listener = listener;
        this.executor = executor;
        this.budgets = budgets;
        if (waitBound().compareTo(maxWait()) > 0) {
            throw misfit(
                    ConfigKey.WAIT,
                    "is longer than " + place(ConfigKey.MAX_WAIT) + "; raise that one or lower this one",
                    ConfigKey.MAX_WAIT);
        }
        if (deadline().compareTo(serverRetention()) >= 0) {
            throw misfit(
                    ConfigKey.DEADLINE,
                    "is not shorter than " + place(ConfigKey.SERVER_RETENTION)
                            + ", so an attempt could come when the server half has forgotten the ID",
                    ConfigKey.SERVER_RETENTION);
        }
        if (get(ConfigKey.BUDGET_CAPACITY) > 0 && get(ConfigKey.BUDGET_COST) > get(ConfigKey.BUDGET_CAPACITY)) {
            throw misfit(
                    ConfigKey.BUDGET_COST,
                    "is above " + place(ConfigKey.BUDGET_CAPACITY)
                            + ", so nothing would be retried; set the capacity to 0 to mean that",
                    ConfigKey.BUDGET_CAPACITY);
        }
        this.generator = makeGenerator();
    }

    /**
     * Every default, nothing loaded.
     *
     * @return the config
     */
    public static IdempotenceClientConfig defaults() {
        return builder().build();
    }

    /**
     * {@code idempotence.properties} on the classpath, then system properties, then environment variables; the later wins.
     * The environment spells {@code retry.max-attempts} as {@code IDEMPOTENCE_CLIENT_RETRY_MAX_ATTEMPTS}.
     *
     * @return the config
     * @throws IdempotenceConfigException if a setting is unknown, malformed, or does not fit the others
     */
    public static IdempotenceClientConfig load() {
        ClassLoader context = Thread.currentThread().getContextClassLoader();
        ClassLoader own = IdempotenceClientConfig.class.getClassLoader();
        return ConfigLoader.load(
                context != null && context.getResource(ConfigLoader.FILE) != null ? context : own,
                System.getProperties(),
                System.getenv());
    }

    /**
     * A builder with every default and nothing loaded.
     *
     * @return the builder
     */
    public static Builder builder() {
        return new Builder();
    }

    /**
     * A builder that begins with these settings.
     *
     * @return the builder; its config has retry budgets of its own
     */
    public Builder toBuilder() {
        Builder builder = new Builder();
        builder.values.putAll(values);
        clients.forEach((client, map) -> builder.clientValues(client).putAll(map));
        environmentClients.forEach(
                (client, map) -> builder.environmentClientValues(client).putAll(map));
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
        Map<ConfigKey<?>, Setting> merged = new HashMap<>(values);
        lay(merged, clients.getOrDefault(client, Map.of()));
        lay(merged, environmentClients.getOrDefault(ConfigLoader.canonical(client), Map.of()));
        lay(merged, ofCode(clients.getOrDefault(client, Map.of())));
        return new IdempotenceClientConfig(
                client, Map.copyOf(merged), Map.of(), Map.of(), retryRegistry, listener, executor, budgets);
    }

    /**
     * These settings as they are for one method: those given for {@code <client>#<method>} laid over the client's.
     *
     * @param client the client's name, for Feign {@code Target.name()}
     * @param method the method's name; overloads share it
     * @return its config
     * @throws IdempotenceConfigException if these settings do not fit each other, or one is a budget, which a variable may be for
     *     a method without our knowing it earlier
     */
    public IdempotenceClientConfig forMethod(String client, String method) {
        String name = client + METHOD_SEPARATOR + method;
        Map<ConfigKey<?>, Setting> own = clients.getOrDefault(name, Map.of());
        checkHasNoBudget(own, key -> "set it for the client");
        Map<ConfigKey<?>, Setting> environment =
                environmentClients.getOrDefault(ConfigLoader.canonical(name), Map.of());
        checkHasNoBudget(
                environment,
                key -> "set " + ConfigLoader.variableOf(client, key) + ", or, if another client than " + client
                        + " is meant, its budget as a system property or in the file");
        Map<ConfigKey<?>, Setting> merged = new HashMap<>(forClient(client).values);
        lay(merged, own);
        lay(merged, environment);
        lay(merged, ofCode(own));
        return new IdempotenceClientConfig(
                name, Map.copyOf(merged), Map.of(), Map.of(), retryRegistry, listener, executor, budgets);
    }

    /**
     * The retry budget of a target.
     *
     * @param target the client's name
     * @return the same object for the same name; beyond 1000 names, one for all further ones that have no settings of their own
     */
    public RetryBudget budget(String target) {
        RetryBudget known = budgets.get(target);
        if (known != null) {
            return known;
        }
        String name = budgets.size() < MOST_BUDGETS || hasSettings(target) ? target : OTHER_TARGETS;
        return budgets.computeIfAbsent(name, n -> {
            IdempotenceClientConfig own = forClient(name);
            return new RetryBudget(
                    own.get(ConfigKey.BUDGET_CAPACITY),
                    own.get(ConfigKey.BUDGET_COST),
                    own.get(ConfigKey.BUDGET_REFUND));
        });
    }

    private boolean hasSettings(String target) {
        return clients.containsKey(target) || environmentClients.containsKey(ConfigLoader.canonical(target));
    }

    /**
     * How the ID is spelled on the wire.
     *
     * @return quoted by default
     */
    public Style headerStyle() {
        return get(ConfigKey.HEADER_STYLE);
    }

    /**
     * The HTTP methods that carry an ID without {@code @Idempotent}.
     *
     * @return POST and PATCH by default
     */
    public Set<String> methods() {
        return get(ConfigKey.METHODS);
    }

    /**
     * Makes the IDs of new calls.
     *
     * @return random UUIDs by default
     */
    public IdempotenceIdGenerator generator() {
        return generator;
    }

    /**
     * The time a logical call has, from its opening.
     *
     * @return 10 s by default
     */
    public Duration deadline() {
        return get(ConfigKey.DEADLINE);
    }

    /**
     * The greatest number of attempts.
     *
     * @return 3 by default
     */
    public int maxAttempts() {
        return get(ConfigKey.MAX_ATTEMPTS);
    }

    /**
     * The bound of the wait before attempt 2.
     *
     * @return 100 ms by default
     */
    public Duration waitBound() {
        return get(ConfigKey.WAIT);
    }

    /**
     * What the bound is multiplied with from wait to wait.
     *
     * @return 2 by default
     */
    public double multiplier() {
        return get(ConfigKey.MULTIPLIER);
    }

    /**
     * Where the bound stops growing.
     *
     * @return 2 s by default
     */
    public Duration maxWait() {
        return get(ConfigKey.MAX_WAIT);
    }

    /**
     * The share of the bound that is random.
     *
     * @return 1 by default: waits from 0 to the bound
     */
    public double jitter() {
        return get(ConfigKey.JITTER);
    }

    /**
     * The statuses that are retried.
     *
     * @return 408, 425, 429, 500, 502, 503, 504 by default
     */
    public Set<Integer> statuses() {
        return get(ConfigKey.STATUSES);
    }

    /**
     * How long the server is asked to hold a duplicate of a running request.
     *
     * @return 5 s by default; zero asks for none
     */
    public Duration preferWait() {
        return get(ConfigKey.PREFER_WAIT);
    }

    /**
     * How long the server half remembers an ID. Attempts end before that, and {@link
     * IdempotenceScope#resume(io.idempotence.IdempotenceId, java.time.Instant, IdempotenceScope.Work)} refuses after it.
     *
     * @return 24 h by default, which is the server half's default
     */
    public Duration serverRetention() {
        return get(ConfigKey.SERVER_RETENTION);
    }

    /**
     * The Resilience4j registry that is asked for retries.
     *
     * @return empty by default
     */
    public Optional<RetryRegistry> retryRegistry() {
        return Optional.ofNullable(retryRegistry);
    }

    /**
     * Hears how every logical call ended.
     *
     * @return empty by default
     */
    public Optional<IdempotenceClientListener> listener() {
        return Optional.ofNullable(listener);
    }

    /**
     * Begins the second and later attempts of calls that return a future.
     *
     * @return the common fork-join pool by default
     */
    public Executor executor() {
        return executor;
    }

    private static void checkHasNoBudget(Map<ConfigKey<?>, Setting> ofMethod, Function<ConfigKey<?>, String> whatToDo) {
        ofMethod.forEach((key, setting) -> {
            if (key.propertyName().startsWith("budget.")) {
                throw new IdempotenceConfigException(
                        setting.spelling(),
                        setting.source(),
                        "a budget belongs to a target, not to one of its methods; " + whatToDo.apply(key));
            }
        });
    }

    private <T> T get(ConfigKey<T> key) {
        T value = find(key);
        if (value == null) {
            throw new IllegalStateException(key.propertyName() + " has no default");
        }
        return value;
    }

    @SuppressWarnings("unchecked")
    private <T> @Nullable T find(ConfigKey<T> key) {
        Setting setting = values.get(key);
        return setting == null ? key.standard() : (T) setting.value();
    }

    private IdempotenceIdGenerator makeGenerator() {
        IdempotenceIdGenerator own = find(ConfigKey.GENERATOR);
        if (own != null) {
            return own;
        }
        String application = find(ConfigKey.GENERATOR_APPLICATION);
        Integer node = find(ConfigKey.GENERATOR_NODE);
        switch (get(ConfigKey.GENERATOR_TYPE)) {
            case "application":
                if (application == null) {
                    throw misfit(
                            ConfigKey.GENERATOR_APPLICATION,
                            "is missing, and " + place(ConfigKey.GENERATOR_TYPE) + " needs it",
                            ConfigKey.GENERATOR_TYPE);
                }
                return IdempotenceIdGenerator.applicationPrefixed(application);
            case "snowflake":
                if (node == null) {
                    throw misfit(
                            ConfigKey.GENERATOR_NODE,
                            "is missing, and " + place(ConfigKey.GENERATOR_TYPE) + " needs it, 0 to 1023",
                            ConfigKey.GENERATOR_TYPE);
                }
                return IdempotenceIdGenerator.snowflake(node);
            default:
                return IdempotenceIdGenerator.uuid();
        }
    }

    /** Of two settings that do not fit, the exception names the place of the one that somebody gave, so that it can be found. */
    private IdempotenceConfigException misfit(ConfigKey<?> key, String message, ConfigKey<?> other) {
        Setting given = values.getOrDefault(key, values.get(other));
        String spelling = given == null ? key.propertyName() : given.spelling();
        String source = given == null ? "default" : given.source();
        return new IdempotenceConfigException(
                spelling, source, place(key) + " " + message + (client == null ? "" : ", for client " + client));
    }

    /** A setting, its value, and where it is from. */
    private String place(ConfigKey<?> key) {
        Setting given = values.get(key);
        Object value = find(key);
        return key.propertyName()
                + (value == null ? "" : " " + value)
                + (given == null ? (value == null ? "" : " (default)") : " (" + given.source() + ")");
    }

    private static void lay(Map<ConfigKey<?>, Setting> under, Map<ConfigKey<?>, Setting> over) {
        if (over.containsKey(ConfigKey.GENERATOR_TYPE)) {
            under.remove(ConfigKey.GENERATOR);
        }
        under.putAll(over);
    }

    /** Variables lie apart from the rest, as they do not spell a client's name; code wins over them, too. */
    private static Map<ConfigKey<?>, Setting> ofCode(Map<ConfigKey<?>, Setting> settings) {
        Map<ConfigKey<?>, Setting> ofCode = new HashMap<>(settings);
        ofCode.values().removeIf(setting -> !setting.source().equals(Setting.BUILDER));
        return ofCode;
    }

    private static Map<String, Map<ConfigKey<?>, Setting>> copy(Map<String, Map<ConfigKey<?>, Setting>> clients) {
        return clients.entrySet().stream()
                .collect(Collectors.toUnmodifiableMap(Map.Entry::getKey, entry -> Map.copyOf(entry.getValue())));
    }

    /**
     * Collects settings. Each setter checks its own value and throws {@link IdempotenceConfigException} if it is not allowed;
     * {@link #build()} checks how they fit. Not thread-safe.
     */
    public static final class Builder {
        private final Map<ConfigKey<?>, Setting> values = new HashMap<>();
        private final Map<String, Map<ConfigKey<?>, Setting>> clients = new HashMap<>();
        private final Map<String, Map<ConfigKey<?>, Setting>> environmentClients = new HashMap<>();
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
            clientValues(Objects.requireNonNull(name, "name")).putAll(own.values);
            return this;
        }

        /**
         * Where retries are looked up at every call: {@code <client>#<method>}, then {@code <client>}, then {@code
         * idempotence}; only instances that exist are used. An instance found is replaced in the registry by one that also
         * obeys deadline, budget, Retry-After and what happened to the attempt; for calls that are not ours it behaves as
         * before, and its events also reach the consumers of the instance it replaced. Its predicate can forbid a retry, not
         * force one. Its result predicate is not asked: an answer is an answer.
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
            return new IdempotenceClientConfig(this);
        }

        Map<ConfigKey<?>, Setting> values() {
            return values;
        }

        Map<ConfigKey<?>, Setting> clientValues(String name) {
            return clients.computeIfAbsent(name, n -> new HashMap<>());
        }

        Map<ConfigKey<?>, Setting> environmentClientValues(String canonicalName) {
            return environmentClients.computeIfAbsent(canonicalName, n -> new HashMap<>());
        }

        private <T> Builder put(ConfigKey<T> key, T value) {
            T checked = key.check(Objects.requireNonNull(value, "value"), key.propertyName(), Setting.BUILDER);
            values.put(key, new Setting(checked, key.propertyName(), Setting.BUILDER));
            return this;
        }
    }
}
