package io.idempotence.server;

import io.github.resilience4j.circuitbreaker.CircuitBreaker;
import io.github.resilience4j.circuitbreaker.CircuitBreakerConfig;
import io.github.resilience4j.circuitbreaker.IllegalStateTransitionException;
import io.idempotence.internal.DaemonThreads;
import io.idempotence.internal.SharedFailure;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.StorageUnavailableException;
import java.time.Duration;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;
import java.util.function.Supplier;

/**
 * The access of request threads to the storage, behind a circuit breaker. After repeated failures or slow calls the breaker opens: calls
 * then fail at once, are not sent, and hold no thread. A background probe closes it again. While the breaker is closed, the number of
 * threads that an unreachable storage can hold is bounded.
 *
 * <p>The first probe that succeeds after a failure triggers the waiting writes, so that they do not wait for the end of their back-off.
 */
final class StorageGuard implements AutoCloseable {
    /** The largest number of callers that may wait for a slow storage. A fast storage has no limit. */
    static final int MOST_SLOW_CALLS = 64;

    private static final long SLOW_CALL_NANOS = TimeUnit.MILLISECONDS.toNanos(250);
    private static final int WINDOW = 20;
    private static final int FEWEST_CALLS = 10;
    private static final int TRIAL_CALLS = 8;

    private static final Duration PROBE_EVERY = Duration.ofMillis(250);
    /** Several, because a probe may hang for the driver's whole timeout, and the recovery must be noticed meanwhile. */
    private static final int MOST_PROBES = 4;

    private enum Pace {
        RUNNING,
        SLOW,
        ENDED
    }

    /** A call of a request thread. */
    private static final class GuardedCall {
        final long start;
        /** The start in {@link StorageGuard#timeWithoutPauses}. */
        final long startWithoutPauses;
        /** Whether the breaker was half open when the call began. Only a few such calls are permitted. */
        final boolean isTrial;
        /** Whether the breaker has the call's result. */
        final AtomicBoolean counted = new AtomicBoolean();

        final AtomicReference<Pace> pace = new AtomicReference<>(Pace.RUNNING);

        GuardedCall(long start, long startWithoutPauses, boolean isTrial) {
            this.start = start;
            this.startWithoutPauses = startWithoutPauses;
            this.isTrial = isTrial;
        }
    }

    private final Events events;
    private final LongSupplier nanoTime;
    private final Runnable probe;
    private final long slowCallNanos;
    private final CircuitBreaker breaker;
    private final Scheduler prober;
    private final AtomicBoolean probing = new AtomicBoolean();
    /** Whether the next probe that succeeds is a recovery. */
    private final AtomicBoolean suspected = new AtomicBoolean();

    /** The calls that are not slow, about in the order of their start. One that has ended is removed when it is the first. */
    private final Queue<GuardedCall> latest = new ConcurrentLinkedQueue<>();
    /** How many of the running calls were slow when they were removed from the queue. */
    private final AtomicInteger slowCallers = new AtomicInteger();

    /** Running trials. */
    private final Set<GuardedCall> trials = ConcurrentHashMap.newKeySet();

    private final TimeWithoutPauses timeWithoutPauses;
    private final CountedSuccesses successes;

    private volatile Runnable onRecovery = () -> {};
    private volatile BooleanSupplier isAwaited = () -> false;
    private volatile boolean closed;

    /**
     * @param probe a cheap write that leaves no record; a different key each time
     * @param slowCall the duration from which a call counts as slow
     */
    StorageGuard(Events events, Runnable probe, Duration slowCall) {
        this(events, probe, breaker(slowCall), System::nanoTime, DaemonThreads.named("idempotence-probes"));
    }

    /** @param nanoTime a clock like {@link System#nanoTime} */
    StorageGuard(Events events, Runnable probe, CircuitBreaker breaker, LongSupplier nanoTime, ThreadFactory threads) {
        this.prober = new Scheduler(threads, MOST_PROBES);
        this.slowCallNanos =
                breaker.getCircuitBreakerConfig().getSlowCallDurationThreshold().toNanos();
        this.nanoTime = nanoTime;
        this.timeWithoutPauses = new TimeWithoutPauses(nanoTime.getAsLong());
        this.successes = new CountedSuccesses(WINDOW, nanoTime.getAsLong());
        this.events = events;
        this.probe = probe;
        this.breaker = breaker;
        breaker.getEventPublisher()
                .onStateTransition(
                        transition -> changed(transition.getStateTransition().getToState()));
    }

    /** @param slowCall the duration from which a call counts as slow */
    static CircuitBreaker breaker(Duration slowCall) {
        return CircuitBreaker.of(
                "idempotence-storage",
                CircuitBreakerConfig.custom()
                        .slidingWindowType(CircuitBreakerConfig.SlidingWindowType.COUNT_BASED)
                        .slidingWindowSize(WINDOW)
                        .minimumNumberOfCalls(FEWEST_CALLS)
                        .failureRateThreshold(50)
                        .slowCallDurationThreshold(slowCall)
                        .slowCallRateThreshold(80)
                        .permittedNumberOfCallsInHalfOpenState(TRIAL_CALLS)
                        // Only a probe closes the breaker, not time.
                        .waitDurationInOpenState(Duration.ofDays(365))
                        .build());
    }

    /**
     * Sets what to do when the storage is back.
     *
     * @param isAwaited whether anything waits; probing continues as long as it does
     * @param onRecovery called when a probe succeeds after a failure
     */
    void whenBack(BooleanSupplier isAwaited, Runnable onRecovery) {
        this.isAwaited = isAwaited;
        this.onRecovery = onRecovery;
    }

    /** Whether the breaker is open. Never true once this is closed, so that waiting writes are retried once more. */
    boolean isOpen() {
        return !closed && breaker.getState() == CircuitBreaker.State.OPEN;
    }

    /** Reports a failed call that will be retried: the storage is probed from now on. */
    void suspect() {
        suspected.set(true);
        startProbing();
    }

    /**
     * Calls the storage to claim or to read, unless the breaker is open or too many callers wait for a slow storage.
     *
     * @throws StorageUnavailableException from the call; or at once, and then {@link StorageUnavailableException#nothingWritten()} is true
     */
    <T> T call(Supplier<T> call) {
        if (!breaker.tryAcquirePermission()) {
            startProbing();
            throw knownOutage();
        }
        // If the state changes in between, this call may return a permission that it never had: one trial more.
        // If the state were read first, a permission could be lost, and the breaker would stay half open.
        boolean isTrial = breaker.getState() == CircuitBreaker.State.HALF_OPEN;
        long now = nanoTime.getAsLong();
        GuardedCall guarded = new GuardedCall(now, timeWithoutPauses.at(now), isTrial);
        if (countSlowCalls(guarded.startWithoutPauses) >= MOST_SLOW_CALLS) {
            breaker.releasePermission();
            throw StorageUnavailableException.notSent(
                    MOST_SLOW_CALLS + " calls already wait for the storage, each for more than "
                            + TimeUnit.NANOSECONDS.toMillis(SLOW_CALL_NANOS) + " ms; it was not called",
                    null);
        }
        try {
            latest.add(guarded);
            if (isTrial) {
                trials.add(guarded);
                // The prober detects a trial that hangs.
                startProbing();
            }
            // Only a half-open breaker counts permissions, and only trials hold one of them.
            return count(guarded, call, isTrial ? breaker::releasePermission : () -> {});
        } finally {
            if (guarded.pace.getAndSet(Pace.ENDED) == Pace.SLOW) {
                slowCallers.decrementAndGet();
            }
            if (isTrial) {
                trials.remove(guarded);
            }
        }
    }

    /**
     * Calls the storage to record a completion, unless the breaker is open. There is no limit on slow callers here: without the call, the
     * response would leave without its record.
     *
     * @throws StorageUnavailableException as in {@link #call}
     */
    <T> T callUnlimited(Supplier<T> call) {
        if (isOpen()) {
            throw knownOutage();
        }
        long now = nanoTime.getAsLong();
        return count(new GuardedCall(now, now, false), call, () -> {});
    }

    private static StorageUnavailableException knownOutage() {
        return StorageUnavailableException.notSent(
                "the storage has failed repeatedly and was not called; it is probed in the background", null);
    }

    /**
     * Counts the running calls that are slow. Removes a call from the queue once it has ended or is slow, so that the cost does not depend
     * on the number of running calls.
     */
    private int countSlowCalls(long now) {
        for (GuardedCall first = latest.peek(); first != null; first = latest.peek()) {
            boolean hasEnded = first.pace.get() == Pace.ENDED;
            if (!hasEnded && now - first.startWithoutPauses <= SLOW_CALL_NANOS) {
                break;
            }
            // Another thread may have removed it.
            if (latest.remove(first) && first.pace.compareAndSet(Pace.RUNNING, Pace.SLOW)) {
                slowCallers.incrementAndGet();
            }
        }
        return slowCallers.get();
    }

    /** @param withoutResult runs instead of counting the call, if its outcome does not depend on the storage */
    private <T> T count(GuardedCall guarded, Supplier<T> call, Runnable withoutResult) {
        try {
            T result = call.get();
            responded(guarded);
            return result;
        } catch (Throwable e) {
            failed(guarded, e, withoutResult);
            throw e;
        }
    }

    private void responded(GuardedCall guarded) {
        if (!guarded.counted.getAndSet(true)) {
            countSuccess(guarded);
        }
        events.storageResponded();
        // A process that could start no thread for a probe may be able to by now.
        prober.startMissingThread();
    }

    /** Counts a success if it is chosen. Trials are few, and each one counts. */
    private void countSuccess(GuardedCall guarded) {
        long nanos = nanoTime.getAsLong() - guarded.start;
        boolean isFast = nanos < slowCallNanos;
        if (!guarded.isTrial && !successes.choose(guarded.start, isFast)) {
            return;
        }
        if (isFast) {
            successes.fast();
        }
        breaker.onSuccess(nanos, TimeUnit.NANOSECONDS);
        if (!isFast) {
            successes.notFast();
        }
    }

    private void failed(GuardedCall guarded, Throwable e, Runnable withoutResult) {
        boolean hasResponded = e instanceof CorruptRecordException
                || (e instanceof StorageUnavailableException unavailable
                        && unavailable.certainty() == StorageUnavailableException.Certainty.REFUSED);
        if (hasResponded) {
            responded(guarded);
        } else if (e instanceof IllegalArgumentException
                || Thread.currentThread().isInterrupted()) {
            if (!guarded.counted.getAndSet(true)) {
                withoutResult.run();
            }
        } else {
            countFailure(guarded, e, withoutResult);
            // Without further calls only a probe would notice the end of the outage.
            startProbing();
        }
    }

    /** Counts a failure, unless it is counted for another call that shared a connection with this one. */
    private void countFailure(GuardedCall guarded, Throwable cause, Runnable withoutResult) {
        if (guarded.counted.getAndSet(true)) {
            return;
        }
        if (SharedFailure.counts(cause, this)) {
            breaker.onError(nanoTime.getAsLong() - guarded.start, TimeUnit.NANOSECONDS, cause);
            successes.notFast();
        } else {
            withoutResult.run();
        }
    }

    /** Counts a trial that hangs, for example in the queue of a pool, as failed, so that it does not block the other trials. */
    private void countTrialsThatHang() {
        long now = nanoTime.getAsLong();
        for (GuardedCall trial : trials) {
            if (now - trial.start > slowCallNanos) {
                Throwable late = new StorageUnavailableException("the storage has not responded in time", null);
                countFailure(trial, late, () -> {});
            }
        }
    }

    private boolean hasUncountedTrials() {
        return trials.stream().anyMatch(trial -> !trial.counted.get());
    }

    private void changed(CircuitBreaker.State state) {
        // Each state begins with an empty window.
        successes.reset();
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
        } else {
            prober.startMissingThread();
        }
    }

    private void plan() {
        if (!prober.queue(PROBE_EVERY, this::look)) {
            probing.set(false);
        }
    }

    private boolean isNeeded() {
        return isOpen() || isAwaited.getAsBoolean() || hasUncountedTrials();
    }

    private void look() {
        if (!isNeeded() && !events.isStorageFailing()) {
            probing.set(false);
            // Something may have begun to wait in between.
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
            events.probeFailed(e);
            suspect();
            return;
        }
        if (breaker.getState() == CircuitBreaker.State.OPEN) {
            try {
                breaker.transitionToHalfOpenState();
            } catch (IllegalStateTransitionException e) {
                // A concurrent probe was faster.
                return;
            }
        }
        events.storageResponded();
        if (suspected.getAndSet(false)) {
            onRecovery.run();
        }
    }

    /** From now on the breaker refuses nothing, and nothing is probed. */
    void beginClose() {
        closed = true;
        prober.interrupt();
    }

    /** Waits for running probes, which a driver may not interrupt. */
    @Override
    public void close() {
        beginClose();
        prober.awaitEnd();
    }
}
