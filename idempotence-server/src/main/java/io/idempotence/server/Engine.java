package io.idempotence.server;

import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.WriteResult;
import java.time.Duration;

/**
 * What the executions of one {@link Idempotence} share.
 *
 * @param writes ends that the storage could not take when they were due
 * @param giveBacks of claims that may have been stored in vain; apart, because the ends of executions must not wait for them
 * @param errorPages answers that an error page may still change; apart, because a write may wait for a storage that is down
 */
record Engine(
        IdempotenceStorage storage,
        Events events,
        Background writes,
        Background giveBacks,
        Background errorPages,
        Leases leases,
        Waiters waiters) {
    private static final Duration AT_ONCE = Duration.ofMillis(1);

    /**
     * Ends the lease, so that the record is abandoned. What the execution before a take-over did is not known still; a release would forget that,
     * and the next execution would be no take-over (T7).
     */
    WriteResult abandon(Claim claim) {
        return storage.renew(claim, AT_ONCE);
    }
}
