package io.idempotence.server.metrics;

import io.idempotence.IdempotenceId;
import io.idempotence.server.IdempotenceEvent;
import io.idempotence.server.IdempotenceListener;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import java.util.EnumMap;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Micrometer metrics of the server half: the number of its events, and the time that it adds to attempts. The application brings {@code
 * io.micrometer:micrometer-core}.
 *
 * <pre>{@code
 * Idempotence.builder(storage).listener(IdempotenceMetrics.of(registry)).build();
 * }</pre>
 *
 * <ul>
 *   <li>counter {@value #EVENTS}, tag {@code event}, one for each {@link IdempotenceEvent}: {@code claimed}, {@code replayed}, {@code
 *       released}, {@code in_progress}, {@code key_reused}, {@code take_over}, {@code unknown}, {@code fenced}, {@code lost}, {@code
 *       storage_error}, {@code oversize};
 *   <li>timer {@value #OVERHEAD}, tag {@code outcome} ({@code run}, {@code replay}, {@code refuse}): the time that this library itself
 *       added to an attempt, see {@link IdempotenceListener#onOverhead};
 *   <li>gauge {@value #STORAGE_AVAILABLE}: 0 while the circuit breaker in front of the storage is open, else 1.
 * </ul>
 *
 * <p>All meters exist from the beginning. No ID, key or namespace becomes a tag. Thread-safe.
 */
public final class IdempotenceMetrics implements IdempotenceListener {
    /** The name of the counters. */
    public static final String EVENTS = "idempotence.server.events";

    /** The name of the timers. */
    public static final String OVERHEAD = "idempotence.server.overhead";

    /** The name of the gauge. */
    public static final String STORAGE_AVAILABLE = "idempotence.server.storage.available";

    private final AtomicInteger available = new AtomicInteger(1);
    private final Map<AttemptEnd, Timer> timers = new EnumMap<>(AttemptEnd.class);
    private final Map<IdempotenceEvent, Counter> counters = new EnumMap<>(IdempotenceEvent.class);

    private IdempotenceMetrics(MeterRegistry registry) {
        for (IdempotenceEvent event : IdempotenceEvent.values()) {
            counters.put(
                    event,
                    Counter.builder(EVENTS)
                            .description("events of the idempotence server half")
                            .tag("event", event.name().toLowerCase(Locale.ROOT))
                            .register(registry));
        }
        // A strong reference, because a registry holds its gauges weakly.
        Gauge.builder(STORAGE_AVAILABLE, available, AtomicInteger::get)
                .description("0 while the circuit breaker in front of the storage is open, else 1")
                .strongReference(true)
                .register(registry);
        for (AttemptEnd end : AttemptEnd.values()) {
            timers.put(
                    end,
                    Timer.builder(OVERHEAD)
                            .description("the time that the idempotence server half added to an attempt")
                            .tag("outcome", end.name().toLowerCase(Locale.ROOT))
                            .register(registry));
        }
    }

    /**
     * A listener that counts and times.
     *
     * @param registry gets the counters, timers and the gauge at once
     */
    public static IdempotenceMetrics of(MeterRegistry registry) {
        return new IdempotenceMetrics(registry);
    }

    @Override
    public void onEvent(IdempotenceEvent event, IdempotenceId id) {
        Counter counter = counters.get(event);
        if (counter != null) {
            counter.increment();
        }
    }

    @Override
    public void onStorage(StorageState state) {
        available.set(state == StorageState.AVAILABLE ? 1 : 0);
    }

    @Override
    public void onOverhead(AttemptEnd end, long nanos) {
        Timer timer = timers.get(end);
        if (timer != null) {
            timer.record(nanos, TimeUnit.NANOSECONDS);
        }
    }
}
