package io.idempotence.server;

import io.idempotence.IdempotenceId;
import io.idempotence.InboundRequest;
import io.idempotence.server.IdempotenceListener.ReleaseReason;
import io.idempotence.server.IdempotencePolicy.Verdict;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.StorageKey;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * The decision to run one handler, and the right to do so. The transport that runs it calls {@link #finish} when the handler has ended,
 * whatever happened. Thread-safe. Only the first {@link #finish} or {@link #finishProvisionally} has an effect.
 */
public final class ClaimedExecution implements Decision, IdempotentExecution {
    private static final ThreadStack<ClaimedExecution> RUNNING = new ThreadStack<>();

    private final EngineParts parts;
    private final Events events;
    private final IdempotenceId id;
    private final int attempt;
    private final Claim claim;
    private final InboundRequest inbound;
    private final boolean takenOver;
    private final IdempotencePolicy policy;
    private final Lease lease;
    private final EndRecorder recorder;
    private final AtomicBoolean finished = new AtomicBoolean();
    private final AtomicBoolean replaceable = new AtomicBoolean();
    private final AtomicReference<UnsettledResults.@Nullable Hold> held = new AtomicReference<>();
    private final HandlerDecision handler = new HandlerDecision();

    private volatile @Nullable Throwable rendered;
    private volatile long claimNanos;
    private volatile IdempotenceListener.AttemptListener attemptListener = IdempotenceListener.AttemptListener.IGNORED;

    /** @param claimSentAt a time at or before the sending of the claim, by {@link System#nanoTime} */
    ClaimedExecution(
            EngineParts parts,
            IdempotentCall call,
            ClaimResult.Claimed claimed,
            long claimSentAt,
            IdempotencePolicy policy) {
        this.parts = parts;
        this.events = parts.events();
        this.id = call.id();
        this.attempt = call.attempt();
        this.claim = claimed.claim();
        this.takenOver = claimed.takenOver();
        this.lease = new Lease(parts.storage(), events, id, claim, policy.lease(), claimSentAt);
        this.recorder = new EndRecorder(parts, call.id(), claimed, policy, lease, handler);
        // The key and not the ID, because two tenants may have the same ID.
        this.inbound = InboundRequest.of(claim.key().value());
        this.policy = policy;
    }

    /** The executions that this thread is part of, innermost first. */
    static List<IdempotentExecution> running() {
        return List.copyOf(RUNNING.values());
    }

    /** Carries the executions of this thread to the thread that runs a task. */
    static Runnable carried(Runnable task) {
        return RUNNING.carried(task, ClaimedExecution::enter);
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
    public Claim claim() {
        return claim;
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
        handler.decide(Verdict.KEEP);
    }

    @Override
    public void release() {
        handler.decide(Verdict.RELEASE);
    }

    @Override
    public void overtaken() {
        handler.overtaken();
    }

    @Override
    public void nothingTookEffect() {
        handler.nothingTookEffect();
    }

    @Override
    public void tookEffect() {
        handler.tookEffect();
    }

    @Override
    public void mayTakeEffect() {
        handler.mayTakeEffect();
    }

    @Override
    public void markUnknown() {
        handler.decide(Verdict.UNKNOWN);
    }

    /**
     * Notes that the handler failed, and that a framework renders its exception as the response. If the policy sets a verdict for the
     * exception, {@link #byStatus} returns that one. If there are several exceptions, the last one counts.
     *
     * @param exception the exception, which does not leave the handler
     */
    public void rendered(Throwable exception) {
        rendered = exception;
    }

    /**
     * The policy's verdict for a response: the verdict for the exception that was {@linkplain #rendered rendered} as this response, if the
     * policy sets one, else the verdict for the status.
     *
     * @param status the status of the handler's response
     * @return the policy's verdict; {@code RELEASE} instead of {@code UNKNOWN} if the handler declared that nothing took effect
     */
    public Verdict byStatus(int status) {
        Throwable exception = rendered;
        if (exception != null && policy.setFor(exception).isPresent()) {
            return byException(exception);
        }
        handler.byPolicyFor(ReleaseReason.ofStatus(status));
        return handler.knowing(policy.ofStatus(status));
    }

    /**
     * The policy's verdict for an exception.
     *
     * @param exception the exception that left the handler
     * @return the policy's verdict; {@code RELEASE} instead of {@code UNKNOWN} if the handler declared that nothing took effect
     */
    public Verdict byException(Throwable exception) {
        handler.byPolicyFor(ReleaseReason.ofException(exception));
        return handler.knowing(policy.ofException(exception));
    }

    /**
     * The final verdict about the ID.
     *
     * @param byPolicy the policy's verdict
     * @return the handler's decision, else {@code byPolicy}; {@code UNKNOWN} instead of {@code RELEASE} if the handler declared that it
     *     took effect
     */
    public Verdict verdict(Verdict byPolicy) {
        return handler.verdict(byPolicy);
    }

    /**
     * Prepares this thread to run the handler: its MDC gets the ID as {@code idempotenceId}, the handler's calls through a client half
     * derive their IDs from this execution ({@link InboundRequest}), and {@link IdempotentExecution#current()} returns it.
     *
     * @return restores the state from before; run it on the same thread
     */
    public Runnable enter() {
        Runnable leaveLog = Events.logged(id);
        Runnable leaveRequest = inbound.enter();
        Runnable leave = RUNNING.enter(this);
        return () -> {
            leave.run();
            leaveRequest.run();
            leaveLog.run();
        };
    }

    /**
     * Reports to the listener that this thread is about to run the handler ({@link IdempotenceListener.AttemptListener#enter}), unless the
     * attempt has ended. Call it around the handler only. {@link #finish} comes after the returned task has run, unlike that of {@link #enter}.
     *
     * @return reports to the listener that the handler has returned; run it on the same thread
     */
    public Runnable enterAttempt() {
        return finished.get() ? () -> {} : events.entered(attemptListener);
    }

    /**
     * Takes this execution, which has ended, off this thread: {@link IdempotentExecution#current()} no longer returns it. So what the
     * transport runs next, such as the delivery of the response, is not part of it.
     *
     * @return restores the state from before; run it on the same thread
     */
    public Runnable leave() {
        return RUNNING.leave(this);
    }

    /**
     * Records the end of the handler like {@link #finish}, without a result: if the ID is kept, later attempts are refused as
     * result-unavailable.
     *
     * @param byPolicy the policy's verdict; the handler's own decision overrides it
     * @return the decision for the caller, as in {@link #finish}
     */
    public Optional<Decision.Substitute> finishWithoutResult(Verdict byPolicy) {
        return finish(byPolicy, ClaimResult.noResult());
    }

    /**
     * Records the end of the handler. Does not throw if the storage fails: the caller still gets the real result, and the write is retried
     * in the background until retention ends (T22).
     *
     * @param byPolicy the policy's verdict; the handler's own decision overrides it
     * @param result what later attempts get if the ID is kept; the caller must not change it afterwards
     * @return empty: give the caller the handler's own result. Otherwise this owner was overtaken (T14): give the caller this
     */
    public Optional<Decision.Substitute> finish(Verdict byPolicy, byte[] result) {
        return end(byPolicy, result, false);
    }

    /**
     * Records the end of the handler like {@link #finish}. A result that is kept may be replaced once, by {@link #replace}, because the
     * application's error page may still change the response. Until {@link #settle}, attempts in this process are refused as in progress
     * instead of getting the result.
     *
     * @param byPolicy the policy's verdict; the handler's own decision overrides it
     * @param result what later attempts get if the ID is kept and the result is not replaced; the caller must not change it afterwards
     * @return the decision for the caller, as in {@link #finish}
     */
    public Optional<Decision.Substitute> finishProvisionally(Verdict byPolicy, byte[] result) {
        return end(byPolicy, result, true);
    }

    private Optional<Decision.Substitute> end(Verdict byPolicy, byte[] result, boolean provisional) {
        if (!finished.compareAndSet(false, true)) {
            return Optional.empty();
        }
        lease.ending();
        long start = System.nanoTime();
        Verdict verdict = verdict(byPolicy);
        try {
            Optional<Decision.Substitute> instead;
            try {
                replaceable.set(provisional && verdict == Verdict.KEEP);
                hold();
                publishUnknown(verdict, byPolicy);
            } finally {
                // No record depends on a log, or on the memory for a hold.
                instead = recorder.recordEnd(verdict, result, provisional);
            }
            if (instead.isPresent()) {
                // The result of another owner is final.
                replaceable.set(false);
                settle();
            }
            return instead;
        } finally {
            events.overhead(IdempotenceListener.AttemptEnd.RUN, claimNanos + System.nanoTime() - start);
            events.ended(
                    attemptListener,
                    IdempotenceListener.AttemptEnd.RUN,
                    switch (verdict) {
                        case KEEP -> "kept";
                        case RELEASE -> "released";
                        case UNKNOWN -> "unknown";
                    });
        }
    }

    private void publishUnknown(Verdict verdict, Verdict byPolicy) {
        if (verdict == Verdict.UNKNOWN) {
            events.publish(
                    IdempotenceEvent.UNKNOWN,
                    id,
                    handler.asked(byPolicy) == Verdict.RELEASE
                            ? "the outcome is marked unknown instead of released, because the handler declared that"
                                    + " it took effect"
                            : "the outcome is marked unknown");
        }
    }

    /**
     * Adds the time of the claim to the overhead of this execution.
     *
     * @param listener called when this execution ends
     */
    void claimed(long nanos, IdempotenceListener.AttemptListener listener) {
        claimNanos = nanos;
        attemptListener = listener;
    }

    /**
     * Replaces the result that {@link #finishProvisionally} recorded, and {@linkplain #settle() settles} it. Only the first call has an
     * effect. Without a provisional result it does nothing. Does not throw if the storage fails, see {@link #finish}.
     *
     * @param result what later attempts get; the caller must not change it afterwards
     * @return the decision for the caller, as in {@link #finish}
     */
    public Optional<Decision.Substitute> replace(byte[] result) {
        if (!replaceable.compareAndSet(true, false)) {
            return Optional.empty();
        }
        try {
            return recorder.replace(result);
        } finally {
            settle();
        }
    }

    /**
     * Announces that the provisional result will probably be replaced: until {@link #settle}, attempts in this process are refused as in
     * progress instead of getting it. Without such a result it does nothing.
     */
    public void hold() {
        if (replaceable.get()) {
            endHold(held.getAndSet(parts.unsettled().hold(claim.key())));
        }
    }

    /**
     * Announces that the provisional result may or may not be replaced: attempts in this process are refused as in progress for at most one
     * more second, unless {@link #hold} or {@link #settle} is called before. Call it once.
     */
    public void settleSoon() {
        UnsettledResults.Hold hold = held.get();
        if (hold != null) {
            hold.endSoon();
        }
    }

    /** Gives attempts the recorded result from now on. Ends {@link #finishProvisionally} and {@link #hold}; a second call does nothing. */
    public void settle() {
        endHold(held.getAndSet(null));
    }

    private static void endHold(UnsettledResults.@Nullable Hold hold) {
        if (hold != null) {
            hold.end();
        }
    }

    /** Reports that the response is too large to be stored. Then finish without a result: {@link #finishWithoutResult}. */
    public void oversize() {
        events.publish(IdempotenceEvent.OVERSIZE, id);
    }

    /** {@return the policy that came with the claim} */
    public IdempotencePolicy policy() {
        return policy;
    }

    Lease lease() {
        return lease;
    }
}
