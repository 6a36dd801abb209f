package io.idempotence.server;

import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.WriteResult;
import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;

/**
 * What the executions of one {@link Idempotence} share.
 *
 * @param writes ends that the storage could not take when they were due
 * @param giveBacks of claims that may have been stored in vain; apart, because the ends of executions must not wait for them
 */
record Engine(
        IdempotenceStorage storage,
        Events events,
        Background writes,
        Background giveBacks,
        Leases leases,
        Waiters waiters)
        implements AutoCloseable {
    private static final Duration AT_ONCE = Duration.ofMillis(1);
    /** A storage that lets one end wait, as a dead shard does, must not hold up the others. */
    private static final int WRITERS = 8;

    static Engine over(IdempotenceStorage storage, Events events, int maxWaiting) {
        // Threads of their own: a write that waits for the storage must not let the leases of others run out.
        Leases leases = new Leases(new Background(events, "idempotence-renewals"));
        return new Engine(
                storage,
                events,
                new Background(events, "idempotence-writes", WRITERS, IdempotenceEvent.UNKNOWN),
                // Nothing ran under what they give back: its outcome is no question.
                new Background(events, "idempotence-give-backs", 1, IdempotenceEvent.STORAGE_ERROR),
                leases,
                new Waiters(new Background(events, "idempotence-polls"), leases::isRunning, maxWaiting));
    }

    /**
     * Ends the lease, so that the record is abandoned. What the execution before a take-over did is not known still; a release
     * would forget that, and the next execution would be no take-over (T7).
     */
    WriteResult abandon(Claim claim) {
        return storage.renew(claim, AT_ONCE);
    }

    @Override
    public void close() {
        waiters.close();
        leases.close();
        List<Runnable> ends =
                Stream.of(writes, giveBacks).map(Background::beginClose).toList();
        ends.forEach(Runnable::run);
        storage.close();
    }
}
