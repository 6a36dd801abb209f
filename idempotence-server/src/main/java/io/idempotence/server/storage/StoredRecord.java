package io.idempotence.server.storage;

import io.idempotence.internal.Millis;
import io.idempotence.server.storage.IdempotenceRecord.Resolution;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * One record at one moment, with the transitions of the state machine. It is for storages that read a record, apply a transition, and
 * replace the record by compare-and-set. Immutable; every transition is a pure function of the record before it (null if there is none, or
 * if its retention is over) and the time.
 *
 * @param phase the stored state; {@code ABANDONED} is derived from {@code leaseUntil}
 * @param takenOver whether the claim was taken from an abandoned owner, so that T2 can repeat it
 * @param leaseUntil in ms of the clock: the end of the lease while claimed, or the time of the mark if unknown
 * @param expiresAt in ms of the clock
 * @param result null unless completed or provisional
 */
public record StoredRecord(
        Phase phase,
        boolean takenOver,
        long fence,
        Owner owner,
        Fingerprint fingerprint,
        long leaseUntil,
        long expiresAt,
        byte @Nullable [] result) {

    /** The owner of a result that no attempt recorded. */
    public static final Owner NOBODY = new Owner(0, 0);

    /** The stored part of a state. */
    public enum Phase {
        /** Claimed; abandoned once its lease is over. */
        CLAIMED,
        /** Completed, with a result. */
        COMPLETED,
        /** Completed, with a result that its owner may replace once. */
        PROVISIONAL,
        /** Released. */
        RELEASED,
        /** Marked unknown. */
        UNKNOWN
    }

    /**
     * The reply of a transition, and the record after it.
     *
     * @param <A> the type of the reply
     * @param reply what the caller gets once {@code after} is stored
     * @param after the record from now on; the same instance as before if nothing changes, null if there is none
     */
    public record Step<A>(A reply, @Nullable StoredRecord after) {}

    /**
     * T1 to T8, T18.
     *
     * @param before the record, or null
     * @param request the claim
     * @param now in ms of the clock
     * @return the result of {@link IdempotenceStorage#claim}
     */
    public static Step<ClaimResult> claim(@Nullable StoredRecord before, ClaimRequest request, long now) {
        if (before == null) {
            return claimed(request, 1, false, now);
        }
        if (!before.fingerprint.equals(request.fingerprint())) {
            return new Step<>(new ClaimResult.KeyReused(), before);
        }
        return switch (before.phase) {
            case COMPLETED, PROVISIONAL -> new Step<>(new ClaimResult.Completed(resultOf(before)), before);
            case UNKNOWN -> new Step<>(new ClaimResult.Unknown(), before);
            // A repetition by the same owner is a packet that was under way for long (T2):
            // its sender no longer waits for a reply.
            case RELEASED ->
                before.owner.equals(request.owner())
                        ? new Step<>(new ClaimResult.InProgress(Duration.ZERO), before)
                        : claimed(request, before.fence + 1, false, now);
            case CLAIMED -> {
                if (before.owner.equals(request.owner())) {
                    yield claimed(request, before.fence, before.takenOver, now);
                }
                if (before.leaseUntil > now) {
                    yield new Step<>(new ClaimResult.InProgress(Duration.ofMillis(before.leaseUntil - now)), before);
                }
                yield request.takeOver()
                        ? claimed(request, before.fence + 1, true, now)
                        : new Step<>(new ClaimResult.Abandoned(before.fence), before);
            }
        };
    }

    /**
     * T10 to T16, T23, T24.
     *
     * @param before the record, or null
     * @param claim the right to run
     * @param phase how the execution ended, not {@link Phase#CLAIMED}
     * @param result what later attempts get; null unless completed or provisional
     * @param now in ms of the clock
     * @param expiresAt in ms of the clock
     * @return the result of {@link IdempotenceStorage#complete}, {@link IdempotenceStorage#completeProvisionally}, {@link
     *     IdempotenceStorage#release} or {@link IdempotenceStorage#markUnknown}
     */
    public static Step<WriteResult> finish(
            @Nullable StoredRecord before,
            Claim claim,
            Phase phase,
            byte @Nullable [] result,
            long now,
            long expiresAt) {
        if (phase == Phase.CLAIMED) {
            throw new IllegalArgumentException("an execution ends completed, provisional, released or unknown");
        }
        StoredRecord finished = new StoredRecord(
                phase,
                false,
                claim.fence(),
                claim.owner(),
                claim.fingerprint(),
                phase == Phase.UNKNOWN ? now : 0,
                expiresAt,
                result);
        if (before == null) {
            return phase == Phase.RELEASED
                    ? new Step<>(new WriteResult.Lost(), null)
                    : new Step<>(new WriteResult.StoredAfterLoss(), finished);
        }
        if (before.isOf(claim)) {
            if (before.phase == Phase.CLAIMED || (before.phase == Phase.PROVISIONAL && phase == Phase.COMPLETED)) {
                return new Step<>(new WriteResult.Done(), finished);
            }
            if (before.phase == phase || (before.phase == Phase.COMPLETED && phase == Phase.PROVISIONAL)) {
                return new Step<>(new WriteResult.Done(), before);
            }
        }
        return fenced(before, claim);
    }

    /**
     * T17.
     *
     * @param before the record, or null
     * @param fence the record's fence when it was read
     * @param resolution the finding
     * @param now in ms of the clock
     * @param expiresAt in ms of the clock; the record's own if that is later
     * @return the result of {@link IdempotenceStorage#resolve}
     */
    public static Step<Boolean> resolve(
            @Nullable StoredRecord before, long fence, Resolution resolution, long now, long expiresAt) {
        boolean open = before != null
                && before.fence == fence
                && (before.phase == Phase.UNKNOWN || (before.phase == Phase.CLAIMED && before.leaseUntil <= now));
        if (before == null || !open) {
            return new Step<>(false, before);
        }
        boolean applied = resolution == Resolution.APPLIED;
        StoredRecord resolved = new StoredRecord(
                applied ? Phase.COMPLETED : Phase.RELEASED,
                false,
                before.fence,
                // Another owner, so that a late owner does not take this result for its own.
                applied ? NOBODY : before.owner,
                before.fingerprint,
                0,
                Math.max(before.expiresAt, expiresAt),
                applied ? ClaimResult.noResult() : null);
        return new Step<>(true, resolved);
    }

    /**
     * T9, T14, T16.
     *
     * @param before the record, or null
     * @param claim the right to run
     * @param leaseUntil in ms of the clock
     * @return the result of {@link IdempotenceStorage#renew}
     */
    public static Step<WriteResult> renew(@Nullable StoredRecord before, Claim claim, long leaseUntil) {
        if (before == null) {
            return new Step<>(new WriteResult.Lost(), null);
        }
        if (!before.isOf(claim) || before.phase != Phase.CLAIMED) {
            return fenced(before, claim);
        }
        StoredRecord renewed = new StoredRecord(
                Phase.CLAIMED,
                before.takenOver,
                before.fence,
                before.owner,
                before.fingerprint,
                leaseUntil,
                Math.max(before.expiresAt, leaseUntil),
                null);
        return new Step<>(new WriteResult.Done(), renewed);
    }

    private static Step<WriteResult> fenced(StoredRecord before, Claim claim) {
        // After a delete the ID may belong to another request: this caller must not see its result.
        boolean sameRequest = before.fingerprint.equals(claim.fingerprint());
        return new Step<>(new WriteResult.Fenced(before.fence, sameRequest ? before.result : null), before);
    }

    private static Step<ClaimResult> claimed(ClaimRequest request, long fence, boolean takenOver, long now) {
        Claim claim = new Claim(request.key(), request.fingerprint(), request.owner(), fence);
        StoredRecord after = new StoredRecord(
                Phase.CLAIMED,
                takenOver,
                fence,
                request.owner(),
                request.fingerprint(),
                now + Millis.capped(request.lease()),
                now + Millis.capped(request.retention()),
                null);
        return new Step<>(new ClaimResult.Claimed(claim, takenOver), after);
    }

    private static byte[] resultOf(StoredRecord completed) {
        byte[] result = completed.result;
        if (result == null) {
            throw new IllegalStateException("a completed record needs a result, and this one has none");
        }
        return result;
    }

    /** This record of an ended execution, without its result. */
    StoredRecord withoutResult() {
        return new StoredRecord(
                phase, takenOver, fence, owner, fingerprint, leaseUntil, expiresAt, ClaimResult.noResult());
    }

    private boolean isOf(Claim claim) {
        return fence == claim.fence() && owner.equals(claim.owner());
    }

    /**
     * The record as an operator sees it.
     *
     * @param now in ms of the clock
     * @return the result of {@link IdempotenceStorage#find}
     */
    public IdempotenceRecord seenAt(StorageKey key, long now) {
        boolean open = phase == Phase.CLAIMED || phase == Phase.UNKNOWN;
        Duration leaseLeft = open ? Duration.ofMillis(leaseUntil - now) : Duration.ZERO;
        State state = switch (phase) {
            case CLAIMED -> leaseUntil > now ? State.IN_PROGRESS : State.ABANDONED;
            case COMPLETED, PROVISIONAL -> State.COMPLETED;
            case RELEASED -> State.RELEASED;
            case UNKNOWN -> State.UNKNOWN;
        };
        return new IdempotenceRecord(key, state, fence, owner, leaseLeft, Duration.ofMillis(expiresAt - now));
    }
}
