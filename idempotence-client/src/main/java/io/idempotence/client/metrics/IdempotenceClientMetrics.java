package io.idempotence.client.metrics;

import io.idempotence.client.IdempotenceClientAttemptEvent;
import io.idempotence.client.IdempotenceClientAttemptEvent.Outcome;
import io.idempotence.client.IdempotenceClientEvent;
import io.idempotence.client.IdempotenceClientListener;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;

/**
 * Micrometer metrics of the client half's calls. The application brings {@code io.micrometer:micrometer-core}.
 *
 * <pre>{@code
 * IdempotenceClientConfig.load().toBuilder().listener(IdempotenceClientMetrics.of(registry)).build();
 * }</pre>
 *
 * <ul>
 *   <li>timer {@value #CALLS}, tags {@code client}, {@code method} and {@code result} ({@code succeeded}, {@code replayed},
 *       {@code refused}, {@code failed}, {@code unknown}): logical calls from opening to end;
 *   <li>counter {@value #ATTEMPTS}, tags {@code client} and {@code outcome} ({@code succeeded}, {@code replayed}, {@code
 *       not_sent}, {@code undetermined}, {@code retryable}, {@code in_progress}, {@code refused}, {@code final});
 *   <li>counter {@value #POLLS}, tag {@code client}: requests that were sent again because an earlier attempt still ran;
 *   <li>timer {@value #WAITED}, tag {@code client}: how long each attempt that met an earlier one waited for it, also while the
 *       server half held its request;
 *   <li>gauge {@value #BUDGET}, tag {@code client}: tokens left in the retry budget when the client's latest call ended.
 * </ul>
 *
 * <p>No ID becomes a tag. Names of clients and methods come from code and are few. Once a meter has {@value #MOST} combinations of tags,
 * {@code other} takes their place in each new one. Thread-safe.
 */
public final class IdempotenceClientMetrics implements IdempotenceClientListener {
    /** The name of the timer of logical calls. */
    public static final String CALLS = "idempotence.client.calls";

    /** The name of the counter of attempts. */
    public static final String ATTEMPTS = "idempotence.client.attempts";

    /** The name of the counter of polls. */
    public static final String POLLS = "idempotence.client.polls";

    /** The name of the timer of waits for earlier attempts. */
    public static final String WAITED = "idempotence.client.waited";

    /** The name of the gauge of the retry budget. */
    public static final String BUDGET = "idempotence.client.budget";

    private static final int MOST = 1000;
    private static final String OTHER = "other";

    private final MeterRegistry registry;
    private final Map<Called, Timer> calls = new ConcurrentHashMap<>();
    private final Map<Attempted, Counter> attempts = new ConcurrentHashMap<>();
    private final Map<String, Counter> polls = new ConcurrentHashMap<>();
    private final Map<String, Timer> waits = new ConcurrentHashMap<>();
    private final Map<String, AtomicInteger> budgets = new ConcurrentHashMap<>();

    private record Called(String client, String method, IdempotenceClientEvent.Result result) {}

    private record Attempted(String client, Outcome outcome) {}

    private IdempotenceClientMetrics(MeterRegistry registry) {
        this.registry = registry;
    }

    /**
     * A listener that measures.
     *
     * @param registry gets the meters as soon as there is something to measure
     * @return the listener
     */
    public static IdempotenceClientMetrics of(MeterRegistry registry) {
        return new IdempotenceClientMetrics(Objects.requireNonNull(registry, "registry"));
    }

    @Override
    public void onCall(IdempotenceClientEvent event) {
        bounded(
                        calls,
                        new Called(event.client(), event.method(), event.result()),
                        new Called(OTHER, OTHER, event.result()),
                        key -> Timer.builder(CALLS)
                                .description("logical calls")
                                .tag("client", key.client)
                                .tag("method", key.method)
                                .tag("result", key.result.name().toLowerCase(Locale.ROOT))
                                .register(registry))
                .record(event.duration());
        bounded(budgets, event.client(), OTHER, this::budget).set(event.budgetLeft());
    }

    @Override
    public void onAttempt(IdempotenceClientAttemptEvent event) {
        bounded(
                        attempts,
                        new Attempted(event.client(), event.outcome()),
                        new Attempted(OTHER, event.outcome()),
                        key -> Counter.builder(ATTEMPTS)
                                .description("attempts of logical calls")
                                .tag("client", key.client)
                                .tag("outcome", key.outcome.name().toLowerCase(Locale.ROOT))
                                .register(registry))
                .increment();
        bounded(
                        polls,
                        event.client(),
                        OTHER,
                        client -> Counter.builder(POLLS)
                                .description("requests that were sent again because an earlier attempt still ran")
                                .tag("client", client)
                                .register(registry))
                .increment(event.polls());
        if (!event.waited().isZero()) {
            bounded(
                            waits,
                            event.client(),
                            OTHER,
                            client -> Timer.builder(WAITED)
                                    .description("how long attempts waited for an earlier one")
                                    .tag("client", client)
                                    .register(registry))
                    .record(event.waited());
        }
    }

    private AtomicInteger budget(String client) {
        AtomicInteger left = new AtomicInteger();
        Gauge.builder(BUDGET, left, AtomicInteger::get)
                .description("tokens left in the retry budget")
                .tag("client", client)
                .strongReference(true)
                .register(registry);
        return left;
    }

    private static <K, V> V bounded(Map<K, V> meters, K key, K other, Function<K, V> maker) {
        V known = meters.get(key);
        return known != null ? known : meters.computeIfAbsent(meters.size() < MOST ? key : other, maker);
    }
}
