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
 * Counts the events of the server half, and times what it adds to an attempt, in a Micrometer registry. The application brings
 * {@code io.micrometer:micrometer-core}.
 *
 * <pre>{@code
 * Idempotence.builder(storage).listener(IdempotenceMetrics.of(registry)).build();
 * }</pre>
 *
 * <p>One counter for each {@link IdempotenceEvent}, {@value #EVENTS} with the tag {@code event}: {@code claimed}, {@code replayed},
 * {@code released}, {@code in_progress}, {@code mismatch}, {@code take_over}, {@code unknown}, {@code fenced}, {@code lost}, {@code storage_error},
 * {@code oversize}. And one timer for each outcome of an attempt, {@value #OVERHEAD} with the tag {@code outcome}: {@code run},
 * {@code replay}, {@code refuse}; it has the time that the framework itself added, see {@link IdempotenceListener#onOverhead}.
 * All are there from the beginning, at 0. A gauge, {@value #STORAGE_AVAILABLE}, is 1, and 0 while the storage is known not to answer. No ID, key or namespace becomes a tag. Thread-safe.
 */
public final class IdempotenceMetrics implements IdempotenceListener {
    /** The name of the counters. */
    public static final String EVENTS = "idempotence.server.events";

    /** The name of the timers. */
    public static final String OVERHEAD = "idempotence.server.overhead";

    /** The name of the gauge. */
    public static final String STORAGE_AVAILABLE = "idempotence.server.storage.available";

    private final AtomicInteger available = new AtomicInteger(1);
    private final Map<Outcome, Timer> timers = new EnumMap<>(Outcome.class);
    private final Map<IdempotenceEvent, Counter> counters = new EnumMap<>(IdempotenceEvent.class);

    private IdempotenceMetrics(MeterRegistry registry) {
        for (IdempotenceEvent event : IdempotenceEvent.values()) {
            counters.put(
                    event,
                    Counter.builder(EVENTS)
                            .description("what the server half of idempotence did")
                            .tag("event", event.name().toLowerCase(Locale.ROOT))
                            .register(registry));
        }
        // Held strongly: a registry forgets what nobody else holds.
        Gauge.builder(STORAGE_AVAILABLE, available, AtomicInteger::get)
                .description("1, and 0 while the storage is known not to answer")
                .strongReference(true)
                .register(registry);
        for (Outcome outcome : Outcome.values()) {
            timers.put(
                    outcome,
                    Timer.builder(OVERHEAD)
                            .description("the time that idempotence itself added to an attempt")
                            .tag("outcome", outcome.name().toLowerCase(Locale.ROOT))
                            .register(registry));
        }
    }

    /**
     * A listener that counts and times.
     *
     * @param registry gets the counters and timers now
     * @return the listener
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
    public void onOverhead(Outcome outcome, long nanos) {
        Timer timer = timers.get(outcome);
        if (timer != null) {
            timer.record(nanos, TimeUnit.NANOSECONDS);
        }
    }
}
