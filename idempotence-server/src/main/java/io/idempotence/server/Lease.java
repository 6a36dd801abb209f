package io.idempotence.server;

import io.idempotence.IdempotenceId;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.WriteResult;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The lease of one claim: how long its owner may rely on the claim, by this machine's monotonic clock (T9), and whether the claim was lost.
 */
final class Lease {
    private static final Duration AT_ONCE = Duration.ofMillis(1);

    private final IdempotenceStorage storage;
    private final Events events;
    private final IdempotenceId id;
    private final Claim claim;
    private final Duration length;

    /** A time at or before the sending of the claim or of its latest renewal. */
    private volatile long heldFrom;

    private volatile long renewedAt;
    private volatile boolean renewalInTrouble;
    private volatile boolean ending;
    private volatile boolean abandoned;
    private volatile boolean releasedInTime;
    private volatile boolean releaseMayBeExecuted;
    private final AtomicBoolean renewing = new AtomicBoolean();
    private final AtomicBoolean alarmed = new AtomicBoolean();

    /** @param claimSentAt a time at or before the sending of the claim, by {@link System#nanoTime} */
    Lease(IdempotenceStorage storage, Events events, IdempotenceId id, Claim claim, Duration length, long claimSentAt) {
        this.storage = storage;
        this.events = events;
        this.id = id;
        this.claim = claim;
        this.length = length;
        this.heldFrom = claimSentAt;
        this.renewedAt = claimSentAt;
    }

    StorageKey key() {
        return claim.key();
    }

    long nanos() {
        return length.toNanos();
    }

    /** Whether the lease may be over, so that another owner may have taken over. */
    boolean mayBeOver() {
        return System.nanoTime() - heldFrom >= nanos();
    }

    long renewedAt() {
        return renewedAt;
    }

    boolean isRenewalDue(long now) {
        return now - renewedAt >= nanos() / 3;
    }

    /** Returns false while another thread renews. */
    boolean beginRenewal() {
        return renewing.compareAndSet(false, true);
    }

    void endRenewal() {
        renewing.set(false);
    }

    boolean isRenewalInTrouble() {
        return renewalInTrouble;
    }

    /** Renews the lease. False if the claim is lost or its record is damaged, so that there is nothing left to renew. */
    boolean renew() {
        long now = System.nanoTime();
        WriteResult renewed;
        try {
            renewed = storage.renew(claim, length);
        } catch (CorruptRecordException e) {
            damaged(e);
            return false;
        }
        if (abandoned) {
            // This renewal may have reached the storage after the write that ended the lease.
            abandon();
        }
        boolean holds = renewed instanceof WriteResult.Done;
        renewedAt = now;
        // An owner that has lost its claim has no lease.
        heldFrom = holds ? now : now - nanos();
        renewalInTrouble = false;
        if (holds || ending) {
            return true;
        }
        judge(renewed);
        return false;
    }

    /** Schedules the next renewal after a sixth of the lease, not at the next tick. */
    void renewalFailed(Throwable cause) {
        events.logStorageFailed(id, "a lease could not be renewed; the renewal is retried", cause);
        renewalInTrouble = true;
        renewedAt = System.nanoTime() - nanos() / 6;
    }

    /** {@link #abandon(IdempotenceStorage, Claim) Abandons} the claim, so that a concurrent renewal does not revive it. */
    WriteResult abandon() {
        abandoned = true;
        return abandon(storage, claim);
    }

    /**
     * Ends the lease of a claim, so that its record is abandoned. The effect of the execution before a take-over is still unknown. A
     * release would hide that, and the next execution would not be a take-over (T7).
     */
    static WriteResult abandon(IdempotenceStorage storage, Claim claim) {
        return storage.renew(claim, AT_ONCE);
    }

    /** Marks the handler as ended. From now on the write of the completion detects a lost claim, not the renewal. */
    void ending() {
        ending = true;
    }

    /**
     * Marks a release whose write failed, at once or in the background.
     *
     * @param inTime whether the claim was still held when the write began. If so, any newer claim that a retry finds began after this
     *     execution had ended
     * @param mayBeExecuted whether the failed write may have been executed
     */
    void releaseFailed(boolean inTime, boolean mayBeExecuted) {
        if (inTime) {
            releasedInTime = true;
        }
        if (mayBeExecuted) {
            releaseMayBeExecuted = true;
        }
    }

    /**
     * Whether this claim had been released before a write, by an earlier write whose reply was lost. The later write then finds a newer
     * claim or no record.
     */
    boolean wasReleasedBefore(WriteResult written) {
        return releasedInTime
                && releaseMayBeExecuted
                && (written instanceof WriteResult.Lost
                        || (written instanceof WriteResult.Fenced fenced && isLater(fenced)));
    }

    /**
     * Whether the other claim came after this one. If its fence is not greater, this claim's record vanished, and the executions may
     * overlap.
     */
    private boolean isLater(WriteResult.Fenced fenced) {
        return fenced.fence() > claim.fence();
    }

    /**
     * Reports a lost claim once, whether a renewal or a completion found it. Returns the result of the owner that overtook this one, if
     * there is one.
     */
    Optional<byte[]> judge(WriteResult written) {
        if (written instanceof WriteResult.Fenced fenced) {
            if (!releasedInTime || !isLater(fenced)) {
                alarm(IdempotenceEvent.FENCED, "a late owner tried to finish and was stopped");
            }
            return Optional.ofNullable(fenced.result());
        }
        if (written instanceof WriteResult.StoredAfterLoss || written instanceof WriteResult.Lost) {
            alarm(IdempotenceEvent.LOST, "the record vanished while its handler ran");
        }
        return Optional.empty();
    }

    private void alarm(IdempotenceEvent event, String message) {
        if (alarmed.compareAndSet(false, true)) {
            events.publish(event, id, message);
        }
    }

    void damaged(CorruptRecordException cause) {
        events.storageFailed(id, "the record was damaged while its handler ran", cause);
    }
}
