package io.idempotence.internal;

import java.time.Duration;

/** The time for which a duplicate may wait while another attempt runs. */
public final class MaxWait {
    private static final Duration LONGEST = Duration.ofMinutes(10);

    private MaxWait() {}

    /**
     * Returns {@code maxWait}.
     *
     * @throws IllegalArgumentException if it is not 0 to 10 minutes
     */
    public static Duration checked(Duration maxWait) {
        if (maxWait.isNegative() || maxWait.compareTo(LONGEST) > 0) {
            throw new IllegalArgumentException("maxWait must be 0 to 10 minutes, got " + maxWait);
        }
        return maxWait;
    }
}
