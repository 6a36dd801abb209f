package io.idempotence.internal;

import java.time.Duration;

/** The time for which a duplicate may wait while another attempt runs. */
public final class MaxWait {
    private static final Duration LONGEST = Duration.ofMinutes(10);

    private MaxWait() {}

    /** Whether it is 0 to 10 minutes. */
    public static boolean isAllowed(Duration maxWait) {
        return !maxWait.isNegative() && maxWait.compareTo(LONGEST) <= 0;
    }

    /**
     * Returns {@code maxWait}.
     *
     * @throws IllegalArgumentException if it is not 0 to 10 minutes
     */
    public static Duration checked(Duration maxWait) {
        if (!isAllowed(maxWait)) {
            throw new IllegalArgumentException("maxWait must be 0 to 10 minutes, got " + maxWait);
        }
        return maxWait;
    }
}
