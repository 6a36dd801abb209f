package io.idempotence.server.servlet;

import io.idempotence.server.IdempotencePolicy;
import java.time.Duration;
import java.util.Objects;

/**
 * The settings of a filter for one request. Immutable.
 *
 * <p>{@link IdempotenceFilterBuilder#settings} changes them request by request.
 *
 * @param isProtected whether the request is protected if it carries an ID. If not, the request passes through untouched
 * @param requiresId whether a protected request must carry an ID
 * @param policy the policy of the request's operation
 * @param maxWait the longest time a duplicate may wait for a running request, even if its {@code Prefer: wait} asks for more: 0, which
 *     never waits, to 10 minutes
 */
public record RequestSettings(boolean isProtected, boolean requiresId, IdempotencePolicy policy, Duration maxWait) {
    /**
     * Checks the settings.
     *
     * @throws IllegalArgumentException if {@code maxWait} is out of range
     */
    public RequestSettings {
        Objects.requireNonNull(policy, "policy");
        checkedMaxWait(maxWait);
    }

    static Duration checkedMaxWait(Duration maxWait) {
        if (maxWait.isNegative() || maxWait.compareTo(Duration.ofMinutes(10)) > 0) {
            throw new IllegalArgumentException("maxWait must be 0 to 10 minutes, got " + maxWait);
        }
        return maxWait;
    }
}
