package io.idempotence.server;

import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;

/**
 * The time at which calls begin, without the pauses of this process. A caller that such a pause delays has not waited for the storage.
 * Thread-safe.
 */
final class TimeWithoutPauses {
    /** A longer gap between two calls counts as this long: this process may have been paused. */
    private static final long LONGEST_GAP_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

    private static final long SHORTEST_GAP_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

    private final AtomicReference<Beginning> latest;

    /**
     * The beginning of a call.
     *
     * @param paused how long this process was probably paused until then
     */
    private record Beginning(long at, long paused) {}

    TimeWithoutPauses(long now) {
        this.latest = new AtomicReference<>(new Beginning(now, 0));
    }

    /** Returns the time without pauses for a call that begins now. */
    long at(long now) {
        Beginning before = Objects.requireNonNull(latest.get());
        long gap = now - before.at;
        if (gap < SHORTEST_GAP_NANOS) {
            // A thread that read the clock before a pause may get here after it.
            return Math.max(now, before.at) - before.paused;
        }
        Beginning own = new Beginning(now, before.paused + Math.max(0, gap - LONGEST_GAP_NANOS));
        // If another call began at the same moment, its time counts.
        latest.compareAndSet(before, own);
        return now - own.paused;
    }
}
