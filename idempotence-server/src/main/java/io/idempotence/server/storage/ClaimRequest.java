package io.idempotence.server.storage;

import java.time.Duration;

/**
 * A request of one attempt for the right to run.
 *
 * @param key the key of the record
 * @param fingerprint the content of the request
 * @param owner the attempt's own token; the same again if the same claim is repeated (T2)
 * @param lease how long the claim holds if its owner disappears; at least 1 ms
 * @param retention how long the record is kept from now on; at least {@code lease}
 * @param takeOver whether an abandoned claim may be taken over (T7); otherwise it is reported (T6)
 * @param toGiveBack whether the claim is made only to be released, and nothing will run under it. Then even a storage with its own
 *     take-over rule takes nothing over
 */
public record ClaimRequest(
        StorageKey key,
        Fingerprint fingerprint,
        Owner owner,
        Duration lease,
        Duration retention,
        boolean takeOver,
        boolean toGiveBack) {
    /**
     * Checks the arguments.
     *
     * @throws IllegalArgumentException if {@code lease} is under 1 ms, {@code retention} is under {@code lease}, or a claim that is to be
     *     released takes over
     */
    public ClaimRequest {
        if (lease.toMillis() < 1) {
            throw new IllegalArgumentException("lease must be at least 1 ms, got " + lease);
        }
        if (retention.compareTo(lease) < 0) {
            throw new IllegalArgumentException(
                    "retention " + retention + " must not be shorter than the lease " + lease);
        }
        if (takeOver && toGiveBack) {
            throw new IllegalArgumentException(
                    "a claim with toGiveBack must not have takeOver; set one of them to false");
        }
    }

    /**
     * A claim under which something will run.
     *
     * @param key the key of the record
     * @param fingerprint the content of the request
     * @param owner the attempt's own token; the same again if the same claim is repeated (T2)
     * @param lease how long the claim holds if its owner disappears; at least 1 ms
     * @param retention how long the record is kept from now on; at least {@code lease}
     * @param takeOver whether an abandoned claim may be taken over (T7); otherwise it is reported (T6)
     * @throws IllegalArgumentException if {@code lease} is under 1 ms or {@code retention} is under {@code lease}
     */
    public ClaimRequest(
            StorageKey key,
            Fingerprint fingerprint,
            Owner owner,
            Duration lease,
            Duration retention,
            boolean takeOver) {
        this(key, fingerprint, owner, lease, retention, takeOver, false);
    }
}
