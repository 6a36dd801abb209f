package io.idempotence.server;

import io.idempotence.IdempotenceId;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.Owner;
import io.idempotence.server.storage.StorageKey;
import java.security.SecureRandom;
import java.util.List;

/**
 * What the engine of one {@link Idempotence} and its executions share.
 *
 * @param storage itself, for renewals and for what is repeated in the background
 * @param guard the way of request threads to the storage
 * @param writes ends that the storage could not take when they were due
 * @param claims gives claims back on a thread of its own, because the ends of executions must not wait for them
 * @param unsettled the results that may be replaced in a moment
 */
record EngineParts(
        IdempotenceStorage storage,
        StorageGuard guard,
        Events events,
        BackgroundWrites writes,
        StorageClaims claims,
        Leases leases,
        UnsettledResults unsettled,
        WaitingDuplicates waiters)
        implements AutoCloseable {
    /** A storage that lets one end wait, as a dead shard does, must not hold up the others. */
    private static final int WRITERS = 8;

    static EngineParts over(IdempotenceStorage storage, String namespace, Events events, int maxWaiting) {
        StorageGuard guard = new StorageGuard(events, probe(storage, namespace), storage.slowCall());
        BackgroundWrites writes =
                new BackgroundWrites(events, guard, "idempotence-writes", WRITERS, IdempotenceEvent.UNKNOWN);
        // Nothing ran under what they give back: its outcome is no question.
        BackgroundWrites giveBacks =
                new BackgroundWrites(events, guard, "idempotence-give-backs", 1, IdempotenceEvent.STORAGE_ERROR);
        guard.whenBack(() -> writes.isAwaiting() || giveBacks.isAwaiting(), () -> {
            writes.flush();
            giveBacks.flush();
        });
        StorageClaims claims = new StorageClaims(storage, guard, giveBacks);
        Leases leases = new Leases();
        WaitingDuplicates waiters = new WaitingDuplicates(leases::isRunning, maxWaiting);
        return new EngineParts(storage, guard, events, writes, claims, leases, new UnsettledResults(), waiters);
    }

    /**
     * Deletes a record that nobody has: a write, which a read-only replica refuses, too. A record of its own each time, because the
     * shard of a single one may be dead, or the only one that is not.
     */
    private static Runnable probe(IdempotenceStorage storage, String namespace) {
        SecureRandom random = new SecureRandom();
        return () -> storage.delete(StorageKey.of(
                namespace,
                "",
                "probe",
                IdempotenceId.of(Long.toHexString(Owner.random(random).high()))));
    }

    @Override
    public void close() {
        guard.beginClose();
        waiters.close();
        leases.close();
        List<Runnable> ends = List.of(writes.beginClose(), claims.beginClose());
        ends.forEach(Runnable::run);
        guard.close();
        storage.close();
    }
}
