package io.idempotence.client.internal.http;

import java.time.Duration;
import java.util.concurrent.TimeUnit;

/** The point in time after which a logical call makes no attempt. By the monotonic clock. */
public final class Deadline {
    /** What a request and its response need at least. With less, an attempt that can only time out would turn a certain end into doubt. */
    private static final long LEAST_MILLIS = 10;

    /** Later than any caller waits. */
    public static final Deadline NEVER = new Deadline(System.nanoTime() + Long.MAX_VALUE / 2);

    private final long at;

    private Deadline(long at) {
        this.at = at;
    }

    public static Deadline in(Duration time) {
        return new Deadline(System.nanoTime() + time.toNanos());
    }

    /** Whole milliseconds left, 0 when over. */
    public long millisLeft() {
        return Math.max(0, TimeUnit.NANOSECONDS.toMillis(at - System.nanoTime()));
    }

    public boolean isOver() {
        return millisLeft() == 0;
    }

    /** True if there is time for an attempt after a wait. */
    public boolean outlasts(long waitMillis) {
        return longestWait() >= waitMillis;
    }

    /** How long a wait may be for an attempt to follow, in milliseconds; negative if there is no time for one. */
    public long longestWait() {
        return millisLeft() - LEAST_MILLIS;
    }
}
