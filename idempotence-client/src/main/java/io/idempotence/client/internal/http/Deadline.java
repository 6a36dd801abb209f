package io.idempotence.client.internal.http;

import java.time.Duration;
import java.util.concurrent.TimeUnit;

/** The time after which a logical call makes no attempt, by the monotonic clock. */
public final class Deadline {
    /**
     * The least time for a request and its response. With less, an attempt could only time out, and would turn a certain end into doubt.
     */
    private static final long LEAST_MILLIS = 10;

    /** A deadline that is later than any caller waits. */
    public static final Deadline NEVER = new Deadline(System.nanoTime() + Long.MAX_VALUE / 2);

    private final long at;

    private Deadline(long at) {
        this.at = at;
    }

    public static Deadline in(Duration time) {
        return new Deadline(System.nanoTime() + time.toNanos());
    }

    /** The whole milliseconds left, 0 when over. */
    public long millisLeft() {
        return Math.max(0, TimeUnit.NANOSECONDS.toMillis(at - System.nanoTime()));
    }

    /** Cuts a timeout of an HTTP client to what is left. To HTTP clients 0 means no limit, so at least a millisecond stays. */
    public static long clip(long timeoutMillis, long millisLeft) {
        return Math.max(1, timeoutMillis <= 0 ? millisLeft : Math.min(timeoutMillis, millisLeft));
    }

    public boolean isOver() {
        return millisLeft() == 0;
    }

    /** Whether there is time for an attempt after a wait. */
    public boolean outlasts(long waitMillis) {
        return longestWait() >= waitMillis;
    }

    /** The longest wait, in milliseconds, after which there is time for an attempt; negative if there is none. */
    public long longestWait() {
        return millisLeft() - LEAST_MILLIS;
    }
}
