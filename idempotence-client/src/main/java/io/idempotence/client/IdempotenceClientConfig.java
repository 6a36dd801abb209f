package io.idempotence.client;

import io.github.resilience4j.retry.RetryRegistry;
import io.idempotence.IdempotenceIdGenerator;
import io.idempotence.http.IdempotencyKeyHeader.Style;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.Executor;
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
 * whole seconds. Limited to half a second less than the read timeout, which is itself limited to the time left until the deadline.
 * 0s sends no preference</td></tr>
 * <tr><td>{@code budget.capacity}, {@code .cost}, {@code .refund}</td><td>500, 5, 1</td><td>see {@link RetryBudget}</td></tr>
 * <tr><td>{@code server-retention}</td><td>24h</td><td>how long the server half remembers an ID; the deadline must be
 * shorter</td></tr>
 * <tr><td>{@code clients.<name>.<key>}</td><td></td><td>any key above, for one client</td></tr>
 * <tr><td>{@code clients.<name>#<method>.<key>}</td><td></td><td>any key above except the budget, for one method</td></tr>
 * </table>
 *
 * <p>Durations are written {@code 100ms}, {@code 10s}, {@code 2m}, {@code 1h}, {@code 7d} or in ISO-8601. The retry settings form the
 * default policy. A retry instance in the {@link IdempotenceClientConfigBuilder#retryRegistry registry} replaces them for the client or
 * method of the same name.
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

    IdempotenceClientConfig(
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
     * @throws IdempotenceClientConfigException if a setting is unknown or malformed, or contradicts another
     */
    public static IdempotenceClientConfig load() {
        ClassLoader context = Thread.currentThread().getContextClassLoader();
        ClassLoader own = IdempotenceClientConfig.class.getClassLoader();
        return load(
                context != null && context.getResource(SettingsLoader.FILE) != null ? context : own,
                System.getProperties(),
                System.getenv());
    }

    static IdempotenceClientConfig load(ClassLoader classes, Properties system, Map<String, String> environment) {
        return builder().load(classes, system, environment).build();
    }

    /** {@return a builder with every default and nothing loaded} */
    public static IdempotenceClientConfigBuilder builder() {
        return new IdempotenceClientConfigBuilder();
    }

    /** {@return a builder that starts with these settings; its config has retry budgets of its own} */
    public IdempotenceClientConfigBuilder toBuilder() {
        return new IdempotenceClientConfigBuilder(settings, retryRegistry, listener, executor);
    }

    /**
     * The settings of one client: its own override the common ones. Budgets are shared. The returned config has no settings of single
     * clients and methods any more.
     *
     * @param client the client's name, for Feign {@code Target.name()}
     * @return its config
     */
    public IdempotenceClientConfig forClient(String client) {
        return with(settings.forClient(client));
    }

    /**
     * The settings of one method: those of {@code <client>#<method>} override the client's. The returned config has no settings of single
     * clients and methods any more.
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

    /** {@return the retry budget of a client; beyond 1,000 clients, all others without settings of their own share one} */
    public RetryBudget budget(String client) {
        return budgets.of(client);
    }

    /** {@return whether calls may carry an ID; true by default} */
    public boolean enabled() {
        return settings.get(ClientSetting.ENABLED);
    }

    /** {@return the spelling of the ID on the wire; quoted by default} */
    public Style headerStyle() {
        return settings.get(ClientSetting.HEADER_STYLE);
    }

    /** {@return the HTTP methods that carry an ID without {@code @Idempotent}; POST and PATCH by default} */
    public Set<String> methods() {
        return settings.get(ClientSetting.METHODS);
    }

    /** {@return the generator of the IDs of new calls; random UUIDs by default} */
    public IdempotenceIdGenerator generator() {
        return settings.generator();
    }

    /** {@return the time that a logical call may take, from its start; 10 s by default} */
    public Duration deadline() {
        return settings.get(ClientSetting.DEADLINE);
    }

    /** {@return the greatest number of attempts; 3 by default} */
    public int maxAttempts() {
        return settings.get(ClientSetting.MAX_ATTEMPTS);
    }

    /** {@return the bound of the wait before attempt 2; 100 ms by default} */
    public Duration waitBound() {
        return settings.get(ClientSetting.WAIT);
    }

    /** {@return the factor from one bound to the next; 2 by default} */
    public double multiplier() {
        return settings.get(ClientSetting.MULTIPLIER);
    }

    /** {@return the largest bound; 2 s by default} */
    public Duration maxWait() {
        return settings.get(ClientSetting.MAX_WAIT);
    }

    /** {@return the share of the bound that is random; 1 by default: waits from 0 to the bound} */
    public double jitter() {
        return settings.get(ClientSetting.JITTER);
    }

    /** {@return the statuses that are retried; 408, 425, 429, 500, 502, 503, 504 by default} */
    public Set<Integer> statuses() {
        return settings.get(ClientSetting.STATUSES);
    }

    /** {@return how long the server may hold a duplicate of a running request; 5 s by default; zero sends no preference} */
    public Duration preferWait() {
        return settings.get(ClientSetting.PREFER_WAIT);
    }

    /** {@return how long the server half remembers an ID, 24 h by default; {@link IdempotenceScope#resume} refuses older ones} */
    public Duration serverRetention() {
        return settings.get(ClientSetting.SERVER_RETENTION);
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
}
