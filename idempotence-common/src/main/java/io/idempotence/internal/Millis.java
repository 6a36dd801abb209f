package io.idempotence.internal;

import java.time.Duration;

/** Conversions of durations to milliseconds, capped at 100 years so that no sum with a clock overflows. */
public final class Millis {
    private static final Duration MAX = Duration.ofDays(36_525);

    private Millis() {}

    /**
     * Converts a duration to milliseconds.
     *
     * @return its milliseconds, at most 100 years
     */
    public static long capped(Duration duration) {
        return (duration.compareTo(MAX) > 0 ? MAX : duration).toMillis();
    }

    /**
     * Converts a duration to milliseconds, after a check.
     *
     * @param name the name of the duration in the message
     * @return its milliseconds, at most 100 years
     * @throws IllegalArgumentException if it is under 1 ms
     */
    public static long checked(String name, Duration duration) {
        if (duration.compareTo(Duration.ofMillis(1)) < 0) {
            throw new IllegalArgumentException(name + " must be at least 1 ms, got " + duration);
        }
        return capped(duration);
    }
}
