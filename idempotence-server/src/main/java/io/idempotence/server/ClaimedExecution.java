package io.idempotence.server;

import io.idempotence.IdempotenceId;
import io.idempotence.InboundRequest;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.WriteResult;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * The right to run one handler, held by the transport that runs it. Thread-safe; the first {@link #finish} or
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
    private final Events events;
    private final IdempotenceId id;
    private final int attempt;
    private final Claim claim;
    private final InboundRequest inbound;
    private final boolean takenOver;
    private final IdempotencePolicy policy;
    private final Lease lease;
    private final AtomicBoolean finished = new AtomicBoolean();
    private final AtomicBoolean replaceable = new AtomicBoolean();
    private final AtomicReference<UnsettledResults.@Nullable Hold> held = new AtomicReference<>();
    private volatile boolean endIsPending;
    private volatile @Nullable Verdict decided;
    private final AtomicReference<Effect> effect = new AtomicReference<>(Effect.UNDECLARED);
    private volatile ReleaseReason byPolicyFor = ReleaseReason.BY_TRANSPORT;
    private volatile boolean overtaken;

    private volatile long claimNanos;

    /** @param claimLeft when the claim left for the storage, at the latest, by {@link System#nanoTime} */
    ClaimedExecution(
            EngineParts parts,
            IdempotentCall call,
            ClaimResult.Claimed claimed,
            long claimLeft,
            IdempotencePolicy policy) {
        this.parts = parts;
        this.events = parts.events();
        this.id = call.id();
        this.attempt = call.attempt();
        this.claim = claimed.claim();
        this.takenOver = claimed.takenOver();
        this.lease = new Lease(parts.storage(), events, id, claim, policy.lease(), claimLeft);
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
     * Records how the handler ended, like {@link #finish}, without a result: if the ID is kept, later attempts are refused as
     * result-unavailable.
     *
     * @param byPolicy what the policy says; the handler's own decision wins
     * @return as {@link #finish}
     */
    public Optional<Decision> finishWithoutResult(Verdict byPolicy) {
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
        return end(byPolicy, result, false);
    }

    /**
     * Records how the handler ended, like {@link #finish}. A result that is kept may be replaced once, by {@link #replace}: the
     * application's error page may still change the response. Until {@link #settle}, attempts in this process are refused as in
     * progress instead of getting the result.
     *
     * @param byPolicy as in {@link #finish}
     * @param result what later attempts get if the ID is kept and the result is not replaced; not changed afterwards
     * @return as {@link #finish}
     */
    public Optional<Decision> finishProvisionally(Verdict byPolicy, byte[] result) {
        return end(byPolicy, result, true);
    }

    private Optional<Decision> end(Verdict byPolicy, byte[] result, boolean provisional) {
        if (!finished.compareAndSet(false, true)) {
            return Optional.empty();
        }
        lease.ending();
        long start = System.nanoTime();
        try {
            Verdict verdict = verdict(byPolicy);
            if (verdict == Verdict.UNKNOWN) {
                events.publish(
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
            events.overhead(IdempotenceListener.Outcome.RUN, claimNanos + System.nanoTime() - start);
        }
    }

    /** How long the claim took is part of the overhead. */
    void claimed(long nanos) {
        claimNanos = nanos;
    }

    /**
     * Replaces the result that {@link #finishProvisionally} recorded, and {@linkplain #settle() settles} it. The first call counts;
     * without a provisional result it does nothing. Never throws for a storage that fails, see {@link #finish}.
     *
     * @param result what later attempts get; not changed afterwards
     * @return as {@link #finish}
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

    /** Reports that the answer is too large to be kept. Finish without a result then: {@link #finishWithoutResult}. */
    public void oversize() {
        events.publish(IdempotenceEvent.OVERSIZE, id);
    }

    /**
     * How the operation treats its IDs.
     *
     * @return the policy that came with the claim
     */
    public IdempotencePolicy policy() {
        return policy;
    }

    Lease lease() {
        return lease;
    }

    /**
     * How an execution ends.
     *
     * @param abandons the record is left abandoned, as it was found, instead of released
     */
    private record End(Verdict verdict, byte[] result, boolean provisional, boolean abandons) {}

    private Optional<Decision> write(Verdict verdict, byte[] result, boolean provisional) {
        // Unless the handler itself says that nothing took effect.
        boolean abandons = verdict == Verdict.RELEASE
                && takenOver
                && policy.onAbandoned() == IdempotencePolicy.OnAbandoned.RE_EXECUTE
                && (overtaken || decided != Verdict.RELEASE);
        return write(new End(verdict, result, provisional, abandons));
    }

    /** The lease is renewed until the end is written: a pending completion must not look abandoned. */
    private Optional<Decision> write(End end) {
        boolean inTime = !lease.mayBeOver();
        if (endIsPending) {
            // The storage is down. The two writes may be made in either order: the provisional one replaces nothing.
            writeLater(end);
            return Optional.empty();
        }
        try {
            return insteadOfOwn(end, parts.guard().record(() -> send(end)));
        } catch (CorruptRecordException e) {
            parts.leases().ended(lease);
            lease.damaged(e);
        } catch (Throwable e) {
            events.storageFailed(id, "the end of an execution is not recorded yet", e);
            if (inTime && end.verdict == Verdict.RELEASE) {
                lease.releasedInTime();
            }
            writeLater(end);
        }
        return insteadOfOwn(end, Optional.empty());
    }

    private void writeLater(End end) {
        endIsPending = true;
        parts.writes()
                .retry(
                        id,
                        end.verdict == Verdict.KEEP ? end.result.length : 0,
                        policy.retention(),
                        () -> send(end),
                        () -> parts.leases().ended(lease));
    }

    /** A success that was not overtaken by an answer stands; a failure of somebody who was overtaken never does (T14). */
    private Optional<Decision> insteadOfOwn(End end, Optional<Decision> canonical) {
        if (canonical.isPresent() && (end.verdict == Verdict.RELEASE || canonical.get() instanceof Decision.Replay)) {
            return canonical;
        }
        return end.verdict == Verdict.RELEASE && overtaken ? Optional.of(Decisions.askAgain()) : Optional.empty();
    }

    /**
     * Those who wait here are told what is recorded, without asking the storage again. Of a provisional result they are not told: it
     * may be replaced in a moment, and their poll finds it if it is not.
     */
    private Optional<Decision> send(End end) {
        WriteResult written = store(end);
        parts.leases().ended(lease);
        if (end.verdict == Verdict.RELEASE && !end.abandons && written instanceof WriteResult.Done) {
            events.released(id, releaseReason());
        }
        Optional<Decision> canonical = lease.judge(written).map(Decisions::ended);
        if (canonical.isPresent()) {
            tell(canonical.get());
        } else if (!end.provisional && !(written instanceof WriteResult.Fenced)) {
            tell(
                    switch (end.verdict) {
                        case KEEP -> Decisions.ended(end.result);
                        case RELEASE -> Decisions.askAgain();
                        case UNKNOWN -> Decisions.outcomeUnknown();
                    });
        }
        return canonical;
    }

    private WriteResult store(End end) {
        IdempotenceStorage storage = parts.storage();
        return switch (end.verdict) {
            case KEEP ->
                end.provisional
                        ? storage.completeProvisionally(claim, end.result, policy.retention())
                        : storage.complete(claim, end.result, policy.retention());
            case RELEASE -> end.abandons ? lease.abandon() : storage.release(claim, policy.retention());
            case UNKNOWN -> storage.markUnknown(claim, policy.retention());
        };
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
}
