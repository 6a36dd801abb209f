package io.idempotence.server;

import io.github.resilience4j.circuitbreaker.CircuitBreaker;
import io.github.resilience4j.circuitbreaker.CircuitBreakerConfig;
import io.github.resilience4j.circuitbreaker.IllegalStateTransitionException;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.StorageUnavailableException;
import java.time.Duration;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;
import java.util.function.Supplier;

/**
 * The way of request threads to the storage. After repeated failures or slow calls a circuit breaker opens: calls then fail at once,
 * certainly not sent, and hold no thread. A probe in the background closes it again. Before the breaker opens, the number of threads
 * that an unreachable storage can hold is bounded.
 *
 * <p>Whoever has writes waiting is told by the first probe that succeeds after a failure, and need not wait for its own back-off.
 */
final class StorageGuard implements AutoCloseable {
    /** So many callers may wait for a storage that is slow; a fast one may have any number at once. */
    static final int MOST_SLOW_CALLERS = 64;

    private static final long SLOW_CALLER_NANOS = TimeUnit.MILLISECONDS.toNanos(250);
    private static final int WINDOW = 20;
    private static final int FEWEST_CALLS = 10;
    private static final int TRIAL_CALLS = 8;

    private static final Duration PROBE_EVERY = Duration.ofMillis(250);
    /** A probe may hang as long as the driver waits: others must notice meanwhile that the storage is back. */
    private static final int MOST_PROBES = 4;

    /**
     * One call of a request thread that is under way.
     *
     * @param isTrial whether the breaker was half open when it began: of these only a few are let through
     * @param counted set by whoever tells the breaker its result
     */
    private record Caller(long start, boolean isTrial, AtomicBoolean counted) {}

    private final Events events;
    private final LongSupplier nanoTime;
    private final Runnable probe;
    private final long slowCallNanos;
    private final CircuitBreaker breaker;
    private final Scheduler prober = new Scheduler("idempotence-probes", MOST_PROBES);
    private final AtomicBoolean probing = new AtomicBoolean();
    /** Whether the next probe that succeeds tells of a recovery. */
    private final AtomicBoolean suspected = new AtomicBoolean();

    private final AtomicInteger callers = new AtomicInteger();
    private final AtomicLong arrivals = new AtomicLong();
    /** In the order of arrival. */
    private final ConcurrentSkipListMap<Long, Caller> underWay = new ConcurrentSkipListMap<>();

    private volatile Runnable onRecovery = () -> {};
    private volatile BooleanSupplier isAwaited = () -> false;
    private volatile boolean closed;

    /**
     * @param probe a cheap write that leaves nothing behind; a different record each time
     * @param slowCall from when on a call counts as slow
     */
    StorageGuard(Events events, Runnable probe, Duration slowCall) {
        this(events, probe, slowCall, System::nanoTime);
    }

    /** @param nanoTime as {@link System#nanoTime} */
    StorageGuard(Events events, Runnable probe, Duration slowCall, LongSupplier nanoTime) {
        this.slowCallNanos = slowCall.toNanos();
        this.nanoTime = nanoTime;
        this.events = events;
        this.probe = probe;
        this.breaker = CircuitBreaker.of(
                "idempotence-storage",
                CircuitBreakerConfig.custom()
                        .slidingWindowType(CircuitBreakerConfig.SlidingWindowType.COUNT_BASED)
                        .slidingWindowSize(WINDOW)
                        .minimumNumberOfCalls(FEWEST_CALLS)
                        .failureRateThreshold(50)
                        .slowCallDurationThreshold(slowCall)
                        .slowCallRateThreshold(80)
                        .permittedNumberOfCallsInHalfOpenState(TRIAL_CALLS)
                        // Time alone closes nothing: the probe does.
                        .waitDurationInOpenState(Duration.ofDays(365))
                        .build());
        breaker.getEventPublisher()
                .onStateTransition(
                        transition -> changed(transition.getStateTransition().getToState()));
    }

    /**
     * Sets who waits for the storage to be back.
     *
     * @param isAwaited whether anybody does: probes go on meanwhile
     * @param onRecovery told when a probe succeeds after a failure
     */
    void whenBack(BooleanSupplier isAwaited, Runnable onRecovery) {
        this.isAwaited = isAwaited;
        this.onRecovery = onRecovery;
    }

    /** Refuses nothing for repeated failures. For tests that lose more calls than any storage does. */
    void disableBreaker() {
        breaker.transitionToDisabledState();
    }

    /** Whether the storage is known not to answer. Never true once this is closed, so that what waits is tried once more. */
    boolean isOpen() {
        return !closed && breaker.getState() == CircuitBreaker.State.OPEN;
    }

    /** A call has failed that somebody will repeat: the storage is probed from now on. */
    void suspect() {
        suspected.set(true);
        startProbing();
    }

    /**
     * Calls the storage to claim or to look, unless it is known not to answer or keeps too many callers waiting.
     *
     * @throws StorageUnavailableException as the call does, or at once; then {@link StorageUnavailableException#nothingWritten()}
     */
    <T> T call(Supplier<T> call) {
        if (!breaker.tryAcquirePermission()) {
            throw knownOutage();
        }
        long arrival = arrivals.getAndIncrement();
        boolean isTrial = breaker.getState() == CircuitBreaker.State.HALF_OPEN;
        Caller caller = new Caller(nanoTime.getAsLong(), isTrial, new AtomicBoolean());
        if (callers.incrementAndGet() > MOST_SLOW_CALLERS && hasTooManySlowCallers(caller.start)) {
            callers.decrementAndGet();
            breaker.releasePermission();
            throw StorageUnavailableException.notSent(
                    MOST_SLOW_CALLERS + " callers wait for the storage already, for longer than "
                            + TimeUnit.NANOSECONDS.toMillis(SLOW_CALLER_NANOS) + " ms; it was not asked",
                    null);
        }
        underWay.put(arrival, caller);
        if (isTrial) {
            // Somebody must notice if it hangs.
            startProbing();
        }
        try {
            return count(caller, call, breaker::releasePermission);
        } finally {
            underWay.remove(arrival);
            callers.decrementAndGet();
        }
    }

    /**
     * Calls the storage to record an end, unless it is known not to answer. Nothing else keeps it out, however slow the storage is:
     * the response would leave without its record.
     *
     * @throws StorageUnavailableException as {@link #call}
     */
    <T> T record(Supplier<T> call) {
        if (isOpen()) {
            throw knownOutage();
        }
        return count(new Caller(nanoTime.getAsLong(), false, new AtomicBoolean()), call, () -> {});
    }

    private static StorageUnavailableException knownOutage() {
        return StorageUnavailableException.notSent(
                "the storage has failed repeatedly and was not asked; it is probed in the background", null);
    }

    /** The oldest come first: if so many of them are slow, the last of these is. */
    private boolean hasTooManySlowCallers(long now) {
        return underWay.values().stream()
                .skip(MOST_SLOW_CALLERS - 1L)
                .findFirst()
                .filter(caller -> now - caller.start > SLOW_CALLER_NANOS)
                .isPresent();
    }

    /** @param withoutResult runs instead of telling the breaker, if the outcome of the call is not the storage's */
    private <T> T count(Caller caller, Supplier<T> call, Runnable withoutResult) {
        try {
            T answer = call.get();
            answered(caller);
            return answer;
        } catch (Throwable e) {
            failed(caller, e, withoutResult);
            throw e;
        }
    }

    private void answered(Caller caller) {
        if (!caller.counted.getAndSet(true)) {
            breaker.onSuccess(nanoTime.getAsLong() - caller.start, TimeUnit.NANOSECONDS);
        }
        events.storageAnswered();
    }

    private void failed(Caller caller, Throwable e, Runnable withoutResult) {
        boolean answered = e instanceof CorruptRecordException
                || (e instanceof StorageUnavailableException unavailable
                        && unavailable.certainty() == StorageUnavailableException.Certainty.REFUSED);
        if (answered) {
            answered(caller);
        } else if (e instanceof IllegalArgumentException
                || Thread.currentThread().isInterrupted()) {
            if (!caller.counted.getAndSet(true)) {
                withoutResult.run();
            }
        } else {
            countFailure(caller, e);
            // Without further calls nobody else would notice the end of the outage.
            startProbing();
        }
    }

    private void countFailure(Caller caller, Throwable cause) {
        if (!caller.counted.getAndSet(true)) {
            breaker.onError(nanoTime.getAsLong() - caller.start, TimeUnit.NANOSECONDS, cause);
        }
    }

    /** A trial that hangs, as in the queue of a pool, has failed: it must not keep others from trying. */
    private void countTrialsThatHang() {
        long now = nanoTime.getAsLong();
        for (Caller caller : underWay.values()) {
            if (caller.isTrial && now - caller.start > slowCallNanos) {
                countFailure(caller, new StorageUnavailableException("the storage has not answered in time", null));
            }
        }
    }

    private boolean hasUncountedTrials() {
        return underWay.values().stream().anyMatch(caller -> caller.isTrial && !caller.counted.get());
    }

    private void changed(CircuitBreaker.State state) {
        if (state == CircuitBreaker.State.OPEN) {
            events.storageIs(IdempotenceListener.StorageState.UNAVAILABLE);
            suspect();
        } else if (state == CircuitBreaker.State.HALF_OPEN) {
            events.storageIs(IdempotenceListener.StorageState.AVAILABLE);
        }
    }

    private void startProbing() {
        if (!probing.getAndSet(true)) {
            plan();
        }
    }

    private void plan() {
        if (prober.later(PROBE_EVERY, this::look) == null) {
            probing.set(false);
        }
    }

    private boolean isNeeded() {
        return isOpen() || isAwaited.getAsBoolean() || hasUncountedTrials();
    }

    private void look() {
        if (!isNeeded() && !events.isStorageFailing()) {
            probing.set(false);
            // Somebody may have come since.
            if (isNeeded()) {
                startProbing();
            }
            return;
        }
        plan();
        countTrialsThatHang();
        try {
            probe.run();
        } catch (Throwable e) {
            events.storageDidNotAnswer(e);
            suspect();
            return;
        }
        if (breaker.getState() == CircuitBreaker.State.OPEN) {
            try {
                breaker.transitionToHalfOpenState();
            } catch (IllegalStateTransitionException e) {
                // Another probe was faster.
                return;
            }
        }
        events.storageAnswered();
        if (suspected.getAndSet(false)) {
            onRecovery.run();
        }
    }

    /** From here on nothing is refused for an outage, and nothing probed. */
    void beginClose() {
        closed = true;
        prober.interrupt();
    }

    /** Waits for probes that are under way, which a driver may not interrupt. */
    @Override
    public void close() {
        beginClose();
        prober.awaitEnd();
    }
}
