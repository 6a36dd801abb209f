package io.idempotence.server;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The choice of the successful calls that the storage's circuit breaker counts. Thread-safe.
 *
 * <ul>
 *   <li>A fast call does not count while the window of the breaker has only fast ones. One more would change nothing.
 *   <li>Slow calls that began together count as one, because one pause delays all calls that are under way.
 *   <li>Then fewer fast calls count as well, so that the breaker still opens at four slow calls for each fast one.
 * </ul>
 */
final class CountedSuccesses {
    private static final long TOGETHER_NANOS = TimeUnit.MILLISECONDS.toNanos(100);
    private static final int SLOW_FOR_A_FAST = 4;

    private final int window;
    /** How many fast calls the breaker has counted since it last counted something else. */
    private final AtomicInteger fastInARow = new AtomicInteger();
    /** When the last slow call began that counted. */
    private final AtomicLong lastSlow;
    /** How many slow calls did not count, without those that have made up for a fast one. */
    private final AtomicInteger uncountedSlow = new AtomicInteger();

    /** @param window how many calls the breaker remembers */
    CountedSuccesses(int window, long now) {
        this.window = window;
        this.lastSlow = new AtomicLong(now - TOGETHER_NANOS);
    }

    /**
     * Chooses whether a call counts.
     *
     * @param start when it began
     */
    boolean choose(long start, boolean isFast) {
        return isFast ? chooseFast() : chooseSlow(start);
    }

    private boolean chooseFast() {
        if (fastInARow.get() >= window) {
            if (uncountedSlow.get() > 0) {
                uncountedSlow.set(0);
            }
            return false;
        }
        return uncountedSlow.getAndUpdate(slow -> slow < SLOW_FOR_A_FAST ? slow : slow - SLOW_FOR_A_FAST)
                < SLOW_FOR_A_FAST;
    }

    private boolean chooseSlow(long start) {
        long last = lastSlow.get();
        if (start - last >= TOGETHER_NANOS && lastSlow.compareAndSet(last, start)) {
            return true;
        }
        // No more than make up for a window: later failures are compared with the fast calls of their own time.
        uncountedSlow.getAndUpdate(slow -> Math.min(slow + 1, SLOW_FOR_A_FAST * window));
        return false;
    }

    /** Reports that the breaker is about to count a fast call. */
    void fast() {
        fastInARow.incrementAndGet();
    }

    /** Reports that the breaker has counted a slow call or a failure. The fast calls that will replace it must count. */
    void notFast() {
        fastInARow.set(0);
    }

    /** Reports that the breaker has an empty window. */
    void reset() {
        fastInARow.set(0);
        uncountedSlow.set(0);
    }
}
