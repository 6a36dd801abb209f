package io.idempotence.server.storage;

import java.time.Duration;

/**
 * A result to record.
 *
 * @param claim the owner's claim
 * @param result what later attempts get; opaque to the storage, and not changed afterwards
 * @param retention how long the record is kept from now on; at least 1 ms
 */
public record CompletionRequest(Claim claim, byte[] result, Duration retention) {
    /**
     * Checks the retention.
     *
     * @throws IllegalArgumentException if {@code retention} is under 1 ms
     */
    public CompletionRequest {
        Millis.checked("retention", retention);
    }
}
