package io.idempotence.server;

import io.idempotence.IdempotenceId;
import io.idempotence.internal.DaemonThreads;
import io.idempotence.internal.Millis;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.Owner;
import io.idempotence.server.storage.StorageKey;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ThreadFactory;
import java.util.function.Function;

/**
 * The parts that the engine of one {@link Idempotence} and its executions share.
 *
 * @param storage the storage itself, for renewals and background writes
 * @param guard the access of request threads to the storage
 * @param writes the completions that could not be written when they were due
 * @param claims the claims, which are released on threads of their own, so that completions do not wait for it
 * @param unsettled the results that may still be replaced
 * @param results the threads that run the application's stages behind the results of duplicates
 * @param completions the completions that follow their responses
 */
record EngineParts(
        IdempotenceStorage storage,
        StorageGuard guard,
        Events events,
        BackgroundWrites writes,
        StorageClaims claims,
        Leases leases,
        UnsettledResults unsettled,
        WaitingDuplicates waiters,
        ResultThreads results,
        CompletionQueue completions)
        implements AutoCloseable {
    /** The number of threads for completions. Several, because a completion that hangs, as on a dead shard, must not delay the others. */
    private static final int WRITERS = 8;

    /** The number of threads that give claims back, for the same reason. */
    private static final int GIVERS_BACK = 4;

    static EngineParts over(IdempotenceStorage storage, String namespace, Events events, int maxWaitingDuplicates) {
        Duration slowCall = storage.slowCall();
        Millis.checked("slowCall() of " + storage.getClass().getName(), slowCall);
        StorageGuard guard = new StorageGuard(events, probe(storage, namespace), slowCall);
        return over(storage, guard, events, maxWaitingDuplicates, DaemonThreads::named);
    }

    /** @param threads returns the thread factory for a thread name */
    static EngineParts over(
            IdempotenceStorage storage,
            StorageGuard guard,
            Events events,
            int maxWaitingDuplicates,
            Function<String, ThreadFactory> threads) {
        BackgroundWrites writes = new BackgroundWrites(
                events, guard, threads.apply("idempotence-writes"), WRITERS, IdempotenceEvent.UNKNOWN);
        // Nothing ran under these claims, so their outcome is not unknown.
        BackgroundWrites giveBacks = new BackgroundWrites(
                events, guard, threads.apply("idempotence-give-backs"), GIVERS_BACK, IdempotenceEvent.STORAGE_ERROR);
        guard.whenBack(() -> writes.isAwaiting() || giveBacks.isAwaiting(), () -> {
            writes.flush();
            giveBacks.flush();
        });
        StorageClaims claims = new StorageClaims(storage, guard, events, giveBacks);
        Leases leases = new Leases(threads.apply("idempotence-renewals"));
        WaitingDuplicates waiters = new WaitingDuplicates(leases::isRunning, maxWaitingDuplicates, threads);
        ResultThreads results = new ResultThreads(threads.apply("idempotence-results"));
        CompletionQueue completions = new CompletionQueue(storage, guard, writes, WRITERS);
        return new EngineParts(
                storage, guard, events, writes, claims, leases, new UnsettledResults(), waiters, results, completions);
    }

    /**
     * A probe that deletes an absent record. That is a write, which a read-only replica refuses. Each probe uses another record, because
     * the shard of a fixed one might be the only one that is dead, or the only one that is alive.
     */
    static Runnable probe(IdempotenceStorage storage, String namespace) {
        SecureRandom random = new SecureRandom();
        return () -> storage.delete(StorageKey.of(
                namespace,
                "",
                "probe",
                IdempotenceId.of(Long.toHexString(Owner.random(random).high()))));
    }

    @Override
    public void close() {
        leases.beginClose();
        guard.beginClose();
        waiters.close();
        results.close();
        completions.beginClose();
        List<Runnable> ends = List.of(writes.beginClose(), claims.beginClose());
        ends.forEach(Runnable::run);
        // Only now: a completion that is still being written must not look abandoned to other processes.
        leases.close();
        guard.close();
        storage.close();
    }
}
