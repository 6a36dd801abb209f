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

/** The time for which an owner may count on its claim, by this machine's monotonic clock (T9), and whether the claim was lost. */
final class Lease {
    private static final Duration AT_ONCE = Duration.ofMillis(1);

    private final IdempotenceStorage storage;
    private final Events events;
    private final IdempotenceId id;
    private final Claim claim;
    private final Duration length;

    /** When the claim or its latest renewal left for the storage, at the latest. */
    private volatile long heldFrom;

    private volatile long renewedAt;
    private volatile boolean renewalInTrouble;
    private volatile boolean ending;
    private volatile boolean abandoned;
    private volatile boolean releasedInTime;
    private final AtomicBoolean renewing = new AtomicBoolean();
    private final AtomicBoolean alarmed = new AtomicBoolean();

    /** @param claimLeft when the claim left for the storage, at the latest, by {@link System#nanoTime} */
    Lease(IdempotenceStorage storage, Events events, IdempotenceId id, Claim claim, Duration length, long claimLeft) {
        this.storage = storage;
        this.events = events;
        this.id = id;
        this.claim = claim;
        this.length = length;
        this.heldFrom = claimLeft;
        this.renewedAt = claimLeft;
    }

    StorageKey key() {
        return claim.key();
    }

    long nanos() {
        return length.toNanos();
    }

    /** Whether it may have run out, so that another owner may have taken over. */
    boolean mayBeOver() {
        return System.nanoTime() - heldFrom >= nanos();
    }

    long renewedAt() {
        return renewedAt;
    }

    boolean isRenewalDue(long now) {
        return now - renewedAt >= nanos() / 3;
    }

    /** False while another thread renews. */
    boolean beginRenewal() {
        return renewing.compareAndSet(false, true);
    }

    void endRenewal() {
        renewing.set(false);
    }

    boolean isRenewalInTrouble() {
        return renewalInTrouble;
    }

    /** Renews it. False if there is no claim any more, or its record is damaged: then there is nothing left to renew. */
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
            // This renewal may have come after the end of the lease that was written.
            abandon();
        }
        boolean holds = renewed instanceof WriteResult.Done;
        renewedAt = now;
        // Whoever was told that it holds the claim no longer has no lease.
        heldFrom = holds ? now : now - nanos();
        renewalInTrouble = false;
        if (holds || ending) {
            return true;
        }
        judge(renewed);
        return false;
    }

    /** Due again after a sixth of the lease, not at every look. */
    void renewalFailed(Throwable cause) {
        events.logStorageFailed(id, "a lease could not be renewed, and will be retried", cause);
        renewalInTrouble = true;
        renewedAt = System.nanoTime() - nanos() / 6;
    }

    /** {@link #abandon(IdempotenceStorage, Claim) Abandons} the claim, and keeps a renewal that is under way from reviving it. */
    WriteResult abandon() {
        abandoned = true;
        return abandon(storage, claim);
    }

    /**
     * Ends the lease of a claim, so that its record is abandoned. What the execution before a take-over did is not known still; a
     * release would forget that, and the next execution would be no take-over (T7).
     */
    static WriteResult abandon(IdempotenceStorage storage, Claim claim) {
        return storage.renew(claim, AT_ONCE);
    }

    /** The handler has ended: from here on the write of its end finds out what became of the claim. */
    void ending() {
        ending = true;
    }

    /** The owner gave the ID back in time, though the write failed: whoever runs when that is retried began after it. */
    void releasedInTime() {
        releasedInTime = true;
    }

    /** Reports a lost claim, once, whether a renewal or the end found it; the result of the owner that overtook this one, if there is one. */
    Optional<byte[]> judge(WriteResult written) {
        if (written instanceof WriteResult.Fenced fenced) {
            if (!releasedInTime) {
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
