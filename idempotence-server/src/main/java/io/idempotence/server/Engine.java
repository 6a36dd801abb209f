package io.idempotence.server;

import io.idempotence.IdempotenceId;
import io.idempotence.OnAbandoned;
import io.idempotence.http.Refusal;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.IdempotenceRecord.Resolution;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import io.idempotence.server.storage.Owner;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.jspecify.annotations.Nullable;

/**
 * The part of an {@link Idempotence} that decides which attempt at a logical call runs and what all others get (promises P2 to P6). For
 * transports: claim, wait if another attempt runs, then run, replay or refuse.
 *
 * <pre>{@code
 * Decision decision = engine.claim(call, policy);
 * if (decision instanceof ClaimedExecution execution) {
 *     run(execution);
 * } else {
 *     engine.await((Decision.Substitute) decision, call, policy, patience).thenAccept(this::respond);
 * }
 * }</pre>
 *
 * <p>A failure of the storage is a refusal, never an exception. Thread-safe.
 */
public final class Engine {
    private static final Duration LATEST_RETRY = Duration.ofMillis(500);

    private final String namespace;
    private final RecordKind kind;
    private final EngineParts parts;
    private final Events events;
    private final StorageClaims claims;
    private final SecureRandom random = new SecureRandom();

    /** @param kind what the records of this engine are of */
    Engine(String namespace, RecordKind kind, EngineParts parts) {
        this.namespace = namespace;
        this.kind = kind;
        this.parts = parts;
        this.events = parts.events();
        this.claims = parts.claims();
    }

    /**
     * Claims the right to run. Takes one claim in the storage, repeated once if its reply is lost or arrives after the lease. With {@code
     * RECOVER}, an abandoned execution is resolved and then claimed again.
     *
     * @param call the attempt
     * @param policy the policy of the operation
     * @return what to do. A failure of the storage is a refusal, never an exception
     */
    public Decision claim(IdempotentCall call, IdempotencePolicy policy) {
        ClaimRequest request = request(call, policy);
        IdempotenceListener.AttemptListener attempt = events.attempt(call.id(), request.key());
        long start = System.nanoTime();
        Decision decision;
        try {
            decision = claimInStorage(call, policy, request);
        } catch (Throwable e) {
            // A claim that the storage may have granted nevertheless is being given back.
            decision = refuse(call.id(), "an attempt was refused, nothing ran", e);
        }
        if (decision instanceof ClaimedExecution execution) {
            execution.claimed(System.nanoTime() - start, attempt);
        } else {
            boolean replays = decision instanceof Decision.Replay;
            IdempotenceListener.AttemptEnd end =
                    replays ? IdempotenceListener.AttemptEnd.REPLAY : IdempotenceListener.AttemptEnd.REFUSE;
            events.overhead(end, System.nanoTime() - start);
            events.ended(
                    attempt,
                    end,
                    decision instanceof Decision.Refuse refuse
                            ? refuse.refusal().code()
                            : "");
        }
        return decision;
    }

    /**
     * Returns whether a {@link #claim} would load a stored result, without loading it.
     *
     * @param call the attempt
     * @return whether the attempt's ID has a result; false if the storage fails, which the claim then reports
     */
    public boolean isCompleted(IdempotentCall call) {
        try {
            return stateOf(kind.key(namespace, call)) == State.COMPLETED;
        } catch (RuntimeException theClaimReportsIt) {
            return false;
        }
    }

    private State stateOf(StorageKey key) {
        return parts.guard()
                .call(() -> parts.storage().find(key))
                .map(IdempotenceRecord::state)
                .orElse(State.RELEASED);
    }

    private ClaimRequest request(IdempotentCall call, IdempotencePolicy policy) {
        return new ClaimRequest(
                kind.key(namespace, call),
                call.fingerprint(),
                Owner.random(random),
                policy.lease(),
                policy.retention(),
                policy.onAbandoned() == OnAbandoned.RE_EXECUTE);
    }

    private Decision claimInStorage(IdempotentCall call, IdempotencePolicy policy, ClaimRequest request) {
        IdempotenceId id = call.id();
        // Checked before and after the claim, because the result may be settled between the claim and its reply.
        boolean unsettled = parts.unsettled().contains(request.key());
        long sentAt = System.nanoTime();
        ClaimResult result = claims.claimForExecution(id, request);
        if (result instanceof ClaimResult.Abandoned abandoned && policy.onAbandoned() == OnAbandoned.RECOVER) {
            result = recover(call, policy, request, abandoned);
        }
        if (isTooLate(result, sentAt, policy)) {
            // The reply took longer than the lease, so another owner may run now. A claim that is still held is granted
            // again with a new lease (T2).
            sentAt = System.nanoTime();
            ClaimResult again = claims.claimAgain(id, request);
            result = isTakeOver(result) ? takenOver(again) : again;
            if (isTooLate(result, sentAt, policy)) {
                claims.giveBackLater(id, request);
                throw new StorageUnavailableException(
                        "the storage responded after the lease of " + policy.lease()
                                + " was over; raise the lease or make the storage faster",
                        null);
            }
        }
        if (result instanceof ClaimResult.Completed
                && (unsettled || parts.unsettled().contains(request.key()))) {
            events.publish(IdempotenceEvent.IN_PROGRESS, id);
            return FixedDecisions.askAgain();
        }
        return result instanceof ClaimResult.Claimed claimed
                ? granted(call, policy, request, claimed, sentAt)
                : withoutRunning(id, policy, result);
    }

    private static boolean isTooLate(ClaimResult result, long sentAt, IdempotencePolicy policy) {
        return result instanceof ClaimResult.Claimed
                && System.nanoTime() - sentAt >= policy.lease().toNanos();
    }

    /**
     * Resolves an abandoned execution by the operation's recovery rule, with a compare-and-set: of all concurrent attempts, one runs (T7,
     * T17).
     */
    private ClaimResult recover(
            IdempotentCall call, IdempotencePolicy policy, ClaimRequest request, ClaimResult.Abandoned abandoned) {
        IdempotencePolicy.Applied applied;
        try {
            applied = policy.recovery().wasApplied(call, abandoned.fence());
        } catch (Throwable e) {
            if (e instanceof InterruptedException) {
                Thread.currentThread().interrupt();
            }
            events.publish(IdempotenceEvent.UNKNOWN, call.id(), "the operation's recovery failed", e);
            return abandoned;
        }
        Resolution resolution;
        if (applied == IdempotencePolicy.Applied.YES) {
            resolution = Resolution.APPLIED;
        } else if (applied == IdempotencePolicy.Applied.NO) {
            resolution = Resolution.NOT_APPLIED;
        } else {
            // A rule that returns null cannot tell either.
            return abandoned;
        }
        parts.guard()
                .call(() -> parts.storage().resolve(request.key(), abandoned.fence(), resolution, policy.retention()));
        // Another process may have resolved it first: the claim now shows what to do.
        return takenOver(claims.claimForExecution(call.id(), request));
    }

    private static boolean isTakeOver(ClaimResult result) {
        return result instanceof ClaimResult.Claimed claimed && claimed.takenOver();
    }

    /** Marks a claim as a take-over. To the storage a recovered execution is a released one, so it does not report a take-over. */
    private static ClaimResult takenOver(ClaimResult result) {
        return result instanceof ClaimResult.Claimed claimed ? new ClaimResult.Claimed(claimed.claim(), true) : result;
    }

    private ClaimedExecution granted(
            IdempotentCall call,
            IdempotencePolicy policy,
            ClaimRequest request,
            ClaimResult.Claimed claimed,
            long sentAt) {
        ClaimedExecution execution = null;
        try {
            execution = new ClaimedExecution(parts, call, claimed, sentAt, policy);
            parts.leases().started(execution.lease());
            if (claimed.takenOver()) {
                events.publish(
                        IdempotenceEvent.TAKE_OVER,
                        call.id(),
                        "an abandoned execution is run again, as its policy allows");
            } else {
                events.publish(IdempotenceEvent.CLAIMED, call.id());
            }
            return execution;
        } catch (Throwable e) {
            // Nothing runs under this claim, so it must not stay, and its lease must not be renewed.
            if (execution != null) {
                parts.leases().ended(execution.lease());
            }
            claims.giveBackNowOrLater(call.id(), claimed, request);
            if (e instanceof OutOfMemoryError) {
                throw new StorageUnavailableException("the lease cannot be renewed: " + e.getMessage(), e);
            }
            throw e;
        }
    }

    private Decision.Substitute withoutRunning(IdempotenceId id, IdempotencePolicy policy, ClaimResult result) {
        if (result instanceof ClaimResult.Completed completed) {
            events.publish(IdempotenceEvent.REPLAYED, id);
            return FixedDecisions.ended(completed.result());
        }
        if (result instanceof ClaimResult.InProgress inProgress) {
            events.publish(IdempotenceEvent.IN_PROGRESS, id);
            return new Decision.Refuse(
                    Refusal.IN_PROGRESS, retryAfter(policy.lease().minus(inProgress.leaseLeft())));
        }
        if (result instanceof ClaimResult.KeyReused) {
            events.publish(IdempotenceEvent.KEY_REUSED, id);
            return FixedDecisions.keyReused();
        }
        // Abandoned or marked unknown: the difference does not matter to the caller, who must not act on either.
        events.publish(IdempotenceEvent.UNKNOWN, id, "an attempt was refused because the outcome of its ID is unknown");
        return FixedDecisions.outcomeUnknown();
    }

    /** Half the time for which the execution has run: few polls for a long handler, quick ones for a short one, without any state. */
    private static Duration retryAfter(Duration running) {
        Duration half = running.dividedBy(2);
        if (half.compareTo(FixedDecisions.SOONEST_RETRY) < 0) {
            return FixedDecisions.SOONEST_RETRY;
        }
        return half.compareTo(LATEST_RETRY) > 0 ? LATEST_RETRY : half;
    }

    /**
     * Waits while another attempt runs. If the other attempt runs in this process, its completion ends the wait. Otherwise one poll of the
     * storage serves all waiting attempts of this process. Waiting holds no thread.
     *
     * @param decision the decision of {@link #claim}
     * @param call the attempt
     * @param policy the policy of the operation
     * @param patience the longest wait; zero does not wait
     * @return {@code decision} at once, unless it is a refusal as in progress. If the first attempt is released, waiting ones are refused as
     *     in progress and may be retried at once. It may be completed on the only thread that ends waits, so its stages must not block.
     *     Cancel it to stop waiting
     */
    public CompletableFuture<Decision.Substitute> await(
            Decision.Substitute decision, IdempotentCall call, IdempotencePolicy policy, Duration patience) {
        if (patience.compareTo(Duration.ZERO) <= 0
                || !(decision instanceof Decision.Refuse refuse)
                || refuse.refusal() != Refusal.IN_PROGRESS) {
            return CompletableFuture.completedFuture(decision);
        }
        ClaimRequest request = request(call, policy);
        CompletableFuture<Decision.Substitute> waiter =
                parts.waiters().await(request, patience, decision, () -> look(call.id(), request));
        waiter.thenAccept(after -> publishAfterWaiting(call.id(), after));
        return waiter;
    }

    /**
     * Waits on the calling thread for a decision of {@link #await}. If the thread is interrupted, it stays so, and the wait is cancelled.
     *
     * @param waiting what {@code await} returned
     * @return the decision; after an interrupt a refusal as in progress
     * @throws java.util.concurrent.CancellationException if the wait was cancelled
     * @throws IllegalStateException if the future failed, which that of {@code await} does not
     */
    public static Decision.Substitute waitFor(CompletableFuture<Decision.Substitute> waiting) {
        try {
            return waiting.get();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            waiting.cancel(false);
            return FixedDecisions.askAgain();
        } catch (ExecutionException e) {
            throw new IllegalStateException("the wait for a decision failed; expected a decision or a refusal", e);
        }
    }

    /**
     * Publishes the event of a decision after a wait, as if there had been no wait. The log has one line for all waiting attempts already.
     */
    private void publishAfterWaiting(IdempotenceId id, Decision.Substitute decision) {
        if (decision instanceof Decision.Replay) {
            events.publish(IdempotenceEvent.REPLAYED, id);
        } else if (decision instanceof Decision.Refuse refuse && decision != WaitingDuplicates.CLOSED) {
            switch (refuse.refusal()) {
                case RESULT_UNAVAILABLE -> events.publish(IdempotenceEvent.REPLAYED, id);
                case OUTCOME_UNKNOWN -> events.publish(IdempotenceEvent.UNKNOWN, id);
                case KEY_REUSED -> events.publish(IdempotenceEvent.KEY_REUSED, id);
                case STORAGE_UNAVAILABLE -> events.publish(IdempotenceEvent.STORAGE_ERROR, id);
                // IN_PROGRESS was published when the attempt arrived.
                default -> {}
            }
        }
    }

    /** The decision for attempts that wait for an execution in another process; null while it runs. Leaves no claim behind. */
    private Decision.@Nullable Substitute look(IdempotenceId id, ClaimRequest request) {
        try {
            return switch (stateOf(request.key())) {
                case IN_PROGRESS -> null;
                case UNKNOWN -> {
                    events.log(
                            IdempotenceEvent.UNKNOWN,
                            id,
                            "waiting duplicates were refused because the outcome of their ID is unknown",
                            null);
                    yield FixedDecisions.outcomeUnknown();
                }
                case RELEASED, ABANDONED -> FixedDecisions.askAgain();
                case COMPLETED -> parts.unsettled().contains(request.key()) ? null : readResult(id, request);
            };
        } catch (Throwable e) {
            // Any exception of a storage ends the wait, because nothing would poll again.
            events.logStorageFailed(id, "waiting duplicates were refused", e);
            return FixedDecisions.storageUnavailable();
        }
    }

    private Decision.Substitute readResult(IdempotenceId id, ClaimRequest request) {
        ClaimResult result = claims.claimForExecution(id, request);
        if (result instanceof ClaimResult.Completed completed) {
            return FixedDecisions.ended(completed.result());
        }
        if (result instanceof ClaimResult.Claimed claimed) {
            // The record was deleted after it was found. Nothing will run under this claim.
            claims.giveBackNowOrLater(id, claimed, request);
        }
        return result instanceof ClaimResult.KeyReused ? FixedDecisions.keyReused() : FixedDecisions.askAgain();
    }

    /**
     * Reports a stored result that cannot be read. Each transport has its own form of results, so only the transport can tell. The result
     * is neither replayed nor run again (T20).
     *
     * @param id the result's ID
     * @param cause what is wrong with it
     * @return what to do instead of the {@link Decision.Replay}
     */
    public Decision.Refuse unreadable(IdempotenceId id, CorruptRecordException cause) {
        Objects.requireNonNull(id, "id");
        Objects.requireNonNull(cause, "cause");
        return refuse(id, "a stored result cannot be read, its attempt was refused", cause);
    }

    private Decision.Refuse refuse(IdempotenceId id, String what, Throwable cause) {
        events.storageFailed(id, what, cause);
        return FixedDecisions.storageUnavailable();
    }
}
