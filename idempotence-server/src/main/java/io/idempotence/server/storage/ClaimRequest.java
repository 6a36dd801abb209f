package io.idempotence.server.storage;

import java.time.Duration;

/**
 * One attempt asks for the right to run.
 *
 * @param key where the record lives
 * @param fingerprint what the request asks for
 * @param owner the attempt's own token; the same again when the same claim is sent again (T2)
 * @param lease how long the claim holds if its owner disappears; at least 1 ms
 * @param retention how long the record lives from now on; at least {@code lease}
 * @param takeOver whether an abandoned claim may be taken over (T7); otherwise it is reported (T6)
 * @param toGiveBack whether nothing will run under this claim, which is made only to be given back. Then also a storage that
 *     takes over by a rule of its own takes nothing over
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
     * Checks that it makes sense.
     *
     * @throws IllegalArgumentException if {@code lease} is under 1 ms, {@code retention} is under {@code lease}, or a claim that
     *     is to be given back takes over
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
            throw new IllegalArgumentException("a claim that is to be given back takes nothing over");
        }
    }

    /**
     * A claim under which something will run.
     *
     * @param key as there
     * @param fingerprint as there
     * @param owner as there
     * @param lease as there
     * @param retention as there
     * @param takeOver as there
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
