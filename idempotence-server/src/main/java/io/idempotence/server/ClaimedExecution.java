package io.idempotence.server;

import io.idempotence.IdempotenceId;
import io.idempotence.InboundRequest;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.WriteResult;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * The right to run one handler, held by the transport that runs it. Thread-safe; the first {@link #finish(Verdict, byte[])} or
 * {@link #finishProvisionally} counts.
 */
public final class ClaimedExecution implements IdempotentExecution {
    /** What is declared of what the handler did. */
    private enum Effect {
        UNDECLARED,
        NONE,
        SOME
    }

    private final EngineParts parts;
    private final IdempotenceId id;
    private final int attempt;
    private final Claim claim;
    private final InboundRequest inbound;
    private final boolean takenOver;
    private final IdempotencePolicy policy;
    /** When the claim or its latest renewal left for the storage, at the latest. */
    private volatile long heldFrom;

    private volatile long renewedAt;
    private volatile boolean renewalInTrouble;
    private final AtomicBoolean renewing = new AtomicBoolean();
    private final AtomicBoolean alarmed = new AtomicBoolean();
    private final AtomicBoolean finished = new AtomicBoolean();
    private final AtomicBoolean replaceable = new AtomicBoolean();
    private final AtomicReference<UnsettledResults.@Nullable Hold> held = new AtomicReference<>();
    private volatile boolean endIsPending;
    private volatile @Nullable Verdict decided;
    private final AtomicReference<Effect> effect = new AtomicReference<>(Effect.UNDECLARED);
    private volatile ReleaseReason byPolicyFor = ReleaseReason.BY_TRANSPORT;
    private volatile boolean overtaken;
    private volatile boolean releasedInTime;
    /** Ends by leaving its record abandoned, as it found it. */
    private volatile boolean abandons;

    private volatile long claimNanos;

    /** @param claimLeft when the claim left for the storage, at the latest, by {@link System#nanoTime} */
    ClaimedExecution(
            EngineParts parts,
            IdempotentCall call,
            ClaimResult.Claimed claimed,
            long claimLeft,
            IdempotencePolicy policy) {
        this.parts = parts;
        this.id = call.id();
        this.attempt = call.attempt();
        this.claim = claimed.claim();
        this.takenOver = claimed.takenOver();
        this.heldFrom = claimLeft;
        this.renewedAt = claimLeft;
        // The key and not the ID, which two tenants may share.
        this.inbound = InboundRequest.of(claim.key().value());
        this.policy = policy;
    }

    @Override
    public IdempotenceId id() {
        return id;
    }

    @Override
    public StorageKey key() {
        return claim.key();
    }

    @Override
    public long fence() {
        return claim.fence();
    }

    @Override
    public int attempt() {
        return attempt;
    }

    @Override
    public boolean takenOver() {
        return takenOver;
    }

    @Override
    public void keep() {
        decided = Verdict.KEEP;
    }

    @Override
    public void release() {
        decided = Verdict.RELEASE;
    }

    @Override
    public void overtaken() {
        overtaken = true;
        decided = Verdict.RELEASE;
    }

    @Override
    public void nothingTookEffect() {
        effect.updateAndGet(known -> known == Effect.SOME ? known : Effect.NONE);
    }

    @Override
    public void tookEffect() {
        effect.set(Effect.SOME);
    }

    @Override
    public void applied() {
        effect.compareAndSet(Effect.NONE, Effect.UNDECLARED);
        overtaken = false;
        if (decided == Verdict.RELEASE) {
            decided = null;
        }
    }

    @Override
    public void markUnknown() {
        decided = Verdict.UNKNOWN;
    }

    /**
     * What the policy says to a status.
     *
     * @param status of the handler's response
     * @return the policy's verdict; {@code RELEASE} instead of {@code UNKNOWN} if the handler declared that nothing took effect
     */
    public Verdict byStatus(int status) {
        byPolicyFor = ReleaseReason.ofStatus(status);
        return inTheLightOfTheEffect(policy.ofStatus(status));
    }

    /**
     * What the policy says to an exception.
     *
     * @param exception that left the handler
     * @return as {@link #byStatus}
     */
    public Verdict byException(Throwable exception) {
        byPolicyFor = ReleaseReason.ofException(exception);
        return inTheLightOfTheEffect(policy.ofException(exception));
    }

    private Verdict inTheLightOfTheEffect(Verdict byPolicy) {
        return byPolicy == Verdict.UNKNOWN && effect.get() == Effect.NONE ? Verdict.RELEASE : byPolicy;
    }

    /**
     * What will become of the ID.
     *
     * @param byPolicy what the policy says
     * @return what the handler decided, else {@code byPolicy}; {@code UNKNOWN} instead of {@code RELEASE} if the handler declared
     *     that it took effect
     */
    public Verdict verdict(Verdict byPolicy) {
        Verdict asked = asked(byPolicy);
        return asked == Verdict.RELEASE && effect.get() == Effect.SOME ? Verdict.UNKNOWN : asked;
    }

    private Verdict asked(Verdict byPolicy) {
        Verdict handler = decided;
        return handler != null ? handler : byPolicy;
    }

    /**
     * The handler runs in this thread now: the ID is in its MDC as {@code idempotenceId}, and the calls it makes through a client
     * half derive their IDs from it ({@link InboundRequest}).
     *
     * @return puts back what was there before; to be run on the same thread
     */
    public Runnable enter() {
        Runnable leaveLog = LoggedId.put(id);
        Runnable leaveRequest = inbound.enter();
        return () -> {
            leaveRequest.run();
            leaveLog.run();
        };
    }

    /**
     * Whether {@link #finish(Verdict, byte[])} was called.
     *
     * @return true once it was
     */
    public boolean finished() {
        return finished.get();
    }

    /**
     * Records how the handler ended, like {@link #finish(Verdict, byte[])}, without a result: if the ID is kept, later attempts are refused
     * as result-unavailable.
     *
     * @param byPolicy as there
     * @return as there
     */
    public Optional<Decision> finish(Verdict byPolicy) {
        return finish(byPolicy, StoredResult.unavailable());
    }

    /**
     * Records how the handler ended. Never throws for a storage that fails: the real result still goes to the caller, and the write is
     * retried in the background until retention ends (T22).
     *
     * @param byPolicy what the policy says; the handler's own decision wins
     * @param result what later attempts get if the ID is kept; not changed afterwards
     * @return empty: give the caller the handler's own result. Otherwise this owner was overtaken (T14): give the caller this, never a
     *     {@link Decision.Run}
     */
    public Optional<Decision> finish(Verdict byPolicy, byte[] result) {
        return finish(byPolicy, result, false);
    }

    /**
     * Records how the handler ended, like {@link #finish(Verdict, byte[])}. A result that is kept may be replaced once, by {@link #replace}: the
     * application's error page may still change the response. Until {@link #settle}, attempts in this process are refused as in
     * progress instead of getting the result.
     *
     * @param byPolicy as in {@link #finish(Verdict, byte[])}
     * @param result what later attempts get if the ID is kept and the result is not replaced; not changed afterwards
     * @return as {@link #finish(Verdict, byte[])}
     */
    public Optional<Decision> finishProvisionally(Verdict byPolicy, byte[] result) {
        return finish(byPolicy, result, true);
    }

    private Optional<Decision> finish(Verdict byPolicy, byte[] result, boolean provisional) {
        if (!finished.compareAndSet(false, true)) {
            return Optional.empty();
        }
        long start = parts.events().startOfOverhead();
        try {
            Verdict verdict = verdict(byPolicy);
            if (verdict == Verdict.UNKNOWN) {
                parts.events()
                        .publish(
                                IdempotenceEvent.UNKNOWN,
                                id,
                                asked(byPolicy) == Verdict.RELEASE
                                        ? "the outcome is marked unknown instead of released, because the handler declared that"
                                                + " it took effect"
                                        : "the outcome is marked unknown");
            }
            replaceable.set(provisional && verdict == Verdict.KEEP);
            hold();
            Optional<Decision> instead = write(verdict, result, provisional);
            if (instead.isPresent()) {
                // What another owner recorded is final.
                replaceable.set(false);
                settle();
            }
            return instead;
        } finally {
            parts.events()
                    .overhead(
                            IdempotenceListener.Outcome.RUN,
                            claimNanos + parts.events().overheadSince(start));
        }
    }

    /** How long the claim took is part of the overhead. */
    void claimed(long start) {
        claimNanos = parts.events().overheadSince(start);
    }

    /**
     * Replaces the result that {@link #finishProvisionally} recorded, and {@linkplain #settle() settles} it. The first call counts;
     * without a provisional result it does nothing. Never throws for a storage that fails, see {@link #finish(Verdict, byte[])}.
     *
     * @param result what later attempts get; not changed afterwards
     * @return as {@link #finish(Verdict, byte[])}
     */
    public Optional<Decision> replace(byte[] result) {
        if (!replaceable.compareAndSet(true, false)) {
            return Optional.empty();
        }
        try {
            return write(Verdict.KEEP, result, false);
        } finally {
            settle();
        }
    }

    /**
     * The provisional result may be replaced soon: until {@link #settle}, attempts in this process are refused as in progress
     * instead of getting it. Without such a result it does nothing.
     */
    public void hold() {
        if (replaceable.get()) {
            end(held.getAndSet(parts.unsettled().hold(claim.key())));
        }
    }

    /**
     * The provisional result may be replaced, or not: attempts in this process are refused as in progress for one more second at
     * most, unless {@link #hold} or {@link #settle} comes before. To be called once.
     */
    public void settleSoon() {
        UnsettledResults.Hold hold = held.get();
        if (hold != null) {
            hold.endSoon();
        }
    }

    /** Attempts get the result that is recorded from now on. Ends {@link #finishProvisionally} and {@link #hold}; a second call does nothing. */
    public void settle() {
        end(held.getAndSet(null));
    }

    private static void end(UnsettledResults.@Nullable Hold hold) {
        if (hold != null) {
            hold.end();
        }
    }

    /** Reports that the answer is too large to be kept. Finish without a result then: {@link #finish(Verdict)}. */
    public void oversize() {
        parts.events().publish(IdempotenceEvent.OVERSIZE, id);
    }

    /**
     * How the operation treats its IDs.
     *
     * @return the policy that came with the claim
     */
    public IdempotencePolicy policy() {
        return policy;
    }

    Duration lease() {
        return policy.lease();
    }

    /**
     * Whether the lease may have run out, so that another owner may have taken over. By this machine's monotonic clock, without a
     * look at the storage.
     *
     * @return false if this owner certainly holds its claim still
     */
    public boolean leaseMayBeOver() {
        return System.nanoTime() - heldFrom >= policy.lease().toNanos();
    }

    long renewedAt() {
        return renewedAt;
    }

    boolean isRenewalDue(long now) {
        return now - renewedAt >= policy.lease().toNanos() / 3;
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

    /** Renews the lease, or stops renewing because the claim is lost. */
    void renew() {
        long now = System.nanoTime();
        WriteResult renewed;
        try {
            renewed = parts.storage().renew(claim, policy.lease());
        } catch (CorruptRecordException e) {
            parts.leases().ended(this);
            parts.events().storageFailed(id, "the record was damaged while its handler ran", e);
            return;
        }
        if (abandons) {
            // This renewal may have come after the end of the lease that was written.
            StorageClaims.abandon(parts.storage(), claim);
        }
        renewedAt = now;
        // Whoever was told that it holds the claim no longer has no lease.
        heldFrom =
                renewed instanceof WriteResult.Done ? now : now - policy.lease().toNanos();
        renewalInTrouble = false;
        if (!(renewed instanceof WriteResult.Done) && !finished()) {
            parts.leases().ended(this);
            judge(renewed);
        }
    }

    /** Due again after a sixth of the lease, not at every look. */
    void renewalFailed(Throwable cause) {
        parts.events().logStorageFailed(id, "a lease could not be renewed, and will be retried", cause);
        renewalInTrouble = true;
        renewedAt = System.nanoTime() - policy.lease().toNanos() / 6;
    }

    /** The lease is renewed until the end is written: a pending completion must not look abandoned. */
    private Optional<Decision> write(Verdict verdict, byte[] result, boolean provisional) {
        boolean holds = !leaseMayBeOver();
        // Unless the handler itself says that nothing took effect.
        abandons = verdict == Verdict.RELEASE
                && takenOver
                && policy.onAbandoned() == IdempotencePolicy.OnAbandoned.RE_EXECUTE
                && (overtaken || decided != Verdict.RELEASE);
        if (endIsPending) {
            // The storage is down. The two writes may be made in either order: the provisional one replaces nothing.
            writeLater(verdict, result, provisional);
            return Optional.empty();
        }
        try {
            return insteadOfOwn(verdict, parts.guard().record(() -> send(verdict, result, provisional)));
        } catch (CorruptRecordException e) {
            parts.leases().ended(this);
            parts.events().storageFailed(id, "the record was damaged while its handler ran", e);
        } catch (Throwable e) {
            parts.events().storageFailed(id, "the end of an execution is not recorded yet", e);
            // Whoever runs by the time this is retried began after this one had ended.
            releasedInTime = holds && verdict == Verdict.RELEASE;
            writeLater(verdict, result, provisional);
        }
        return insteadOfOwn(verdict, Optional.empty());
    }

    private void writeLater(Verdict verdict, byte[] result, boolean provisional) {
        endIsPending = true;
        parts.writes()
                .retry(
                        id,
                        verdict == Verdict.KEEP ? result.length : 0,
                        policy.retention(),
                        () -> send(verdict, result, provisional),
                        () -> parts.leases().ended(this));
    }

    /** A success that was not overtaken by an answer stands; a failure of somebody who was overtaken never does (T14). */
    private Optional<Decision> insteadOfOwn(Verdict verdict, Optional<Decision> canonical) {
        if (canonical.isPresent() && (verdict == Verdict.RELEASE || canonical.get() instanceof Decision.Replay)) {
            return canonical;
        }
        return verdict == Verdict.RELEASE && overtaken ? Optional.of(Decisions.askAgain()) : Optional.empty();
    }

    /**
     * Those who wait here are told what is recorded, without asking the storage again. Of a provisional result they are not told: it
     * may be replaced in a moment, and their poll finds it if it is not.
     */
    private Optional<Decision> send(Verdict verdict, byte[] result, boolean provisional) {
        WriteResult written = switch (verdict) {
            case KEEP ->
                provisional
                        ? parts.storage().completeProvisionally(claim, result, policy.retention())
                        : parts.storage().complete(claim, result, policy.retention());
            case RELEASE ->
                abandons
                        ? StorageClaims.abandon(parts.storage(), claim)
                        : parts.storage().release(claim, policy.retention());
            case UNKNOWN -> parts.storage().markUnknown(claim, policy.retention());
        };
        parts.leases().ended(this);
        if (verdict == Verdict.RELEASE && !abandons && written instanceof WriteResult.Done) {
            parts.events().released(id, releaseReason());
        }
        Optional<Decision> canonical = judge(written).map(Decisions::ended);
        if (canonical.isPresent()) {
            tell(canonical.get());
        } else if (!provisional && !(written instanceof WriteResult.Fenced)) {
            tell(
                    switch (verdict) {
                        case KEEP -> Decisions.ended(result);
                        case RELEASE -> Decisions.askAgain();
                        case UNKNOWN -> Decisions.outcomeUnknown();
                    });
        }
        return canonical;
    }

    private ReleaseReason releaseReason() {
        if (decided != Verdict.RELEASE) {
            return byPolicyFor;
        }
        return overtaken ? ReleaseReason.OVERTAKEN : ReleaseReason.BY_HANDLER;
    }

    private void tell(Decision decision) {
        parts.waiters().tell(claim.key(), claim.fingerprint(), decision);
    }

    private Optional<byte[]> judge(WriteResult written) {
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

    /** A renewal and the end may find the same; it pages once. */
    private void alarm(IdempotenceEvent event, String message) {
        if (alarmed.compareAndSet(false, true)) {
            parts.events().publish(event, id, message);
        }
    }
}
