package io.idempotence.server.storage;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** P3: what an owner may do to its claim, and a late owner may not: renewals, releases and unknown outcomes (T9, T12 to T14, T16). */
interface OwnershipContract extends StorageUnderTest {
    @Test
    default void renewedLeaseRunsFromNowOn() {
        Claim claim = claim(SHORT);
        assertThat(storage().renew(claim, LONG)).isEqualTo(new WriteResult.Done());
        passTime(SHORT);

        assertThat(storage().claim(takeOver(newOwner(), LONG)))
                .isInstanceOfSatisfying(
                        ClaimResult.InProgress.class,
                        inProgress -> assertThat(inProgress.leaseLeft()).isBetween(LONG.minusMinutes(1), LONG));
    }

    @Test
    default void ownerPastItsLeaseMayStillRenewUntilSomeoneTakesOver() {
        Claim claim = claim(SHORT);
        passTime(SHORT);

        assertThat(storage().renew(claim, LONG)).isEqualTo(new WriteResult.Done());
        assertState(State.IN_PROGRESS, 1);
    }

    @Test
    default void renewedRecordLivesAtLeastAsLongAsItsLease() {
        Duration retention = Duration.ofSeconds(10);
        Claim claim = claimed(storage().claim(new ClaimRequest(key(), PAY, newOwner(), SHORT, retention, false)));
        storage().renew(claim, LONG);

        assertThat(storage().find(key()).orElseThrow().retentionLeft()).isGreaterThan(LONG.minusMinutes(1));
    }

    @Test
    default void renewDoesNotShortenTheRetention() {
        Claim claim = claim(LONG);
        storage().renew(claim, SHORT);
        passTime(SHORT);

        assertState(State.ABANDONED, 1);
        assertThat(storage().find(key()).orElseThrow().retentionLeft()).isGreaterThan(RETENTION.minusMinutes(10));
    }

    @Test
    default void vanishedRecordCannotBeRenewedOrReleased() {
        Claim claim = claim(LONG);
        storage().delete(key());

        assertThat(storage().renew(claim, LONG)).isEqualTo(new WriteResult.Lost());
        assertThat(storage().release(claim, RETENTION)).isEqualTo(new WriteResult.Lost());
        assertThat(storage().find(key())).isEmpty();
    }

    @Test
    default void vanishedRecordIsMarkedUnknownAnew() {
        Claim claim = claim(LONG);
        storage().delete(key());

        assertThat(storage().markUnknown(claim, RETENTION)).isEqualTo(new WriteResult.StoredAfterLoss());
        assertThat(storage().claim(takeOver(newOwner(), LONG))).isEqualTo(new ClaimResult.Unknown());
    }

    @Test
    default void releaseTwiceIsDone() {
        Claim claim = claim(LONG);

        assertThat(storage().release(claim, RETENTION)).isEqualTo(new WriteResult.Done());
        assertThat(storage().release(claim, RETENTION)).isEqualTo(new WriteResult.Done());
        assertState(State.RELEASED, 1);
    }

    @Test
    default void releaseSentAgainDoesNotTouchTheNextClaim() {
        Claim first = claim(LONG);
        storage().release(first, RETENTION);
        Claim second = claim(LONG);

        assertFenced(storage().release(first, RETENTION), null);
        assertState(State.IN_PROGRESS, 2);
        assertThat(storage().complete(second, RESULT, RETENTION)).isEqualTo(new WriteResult.Done());
    }

    @Test
    default void releaseSentAgainShowsThatALaterClaimFollowed() {
        Claim first = claim(LONG);
        storage().release(first, RETENTION);
        Claim second = claim(LONG);
        assertThat(fence(storage().release(first, RETENTION))).isEqualTo(2);

        storage().complete(second, RESULT, RETENTION);
        assertThat(fence(storage().release(first, RETENTION))).isEqualTo(2);
    }

    @Test
    default void releaseOfAVanishedRecordShowsThatNoLaterClaimFollowed() {
        Claim lost = claim(LONG);
        storage().delete(key());
        claim(LONG);

        assertThat(fence(storage().release(lost, RETENTION))).isEqualTo(lost.fence());
    }

    private static long fence(WriteResult result) {
        return ((WriteResult.Fenced) result).fence();
    }

    @Test
    default void sameOwnersOtherFenceIsFencedOff() {
        storage().release(claim(LONG), RETENTION);
        Claim second = claim(LONG);
        assertThat(second.fence()).isEqualTo(2);

        assertFenced(storage().complete(withFence(second, 1), RESULT, RETENTION), null);
        assertFenced(storage().release(withFence(second, 1), RETENTION), null);
        assertState(State.IN_PROGRESS, 2);
    }

    @Test
    default void releasedClaimCannotBeCompletedRenewedOrMarked() {
        Claim claim = claim(LONG);
        storage().release(claim, RETENTION);

        assertFenced(storage().complete(claim, RESULT, RETENTION), null);
        assertFenced(storage().renew(claim, LONG), null);
        assertFenced(storage().markUnknown(claim, RETENTION), null);
        assertState(State.RELEASED, 1);
    }

    @Test
    default void unknownTwiceIsDoneAndNothingElseFollows() {
        Claim claim = claim(LONG);
        storage().markUnknown(claim, RETENTION);

        assertThat(storage().markUnknown(claim, RETENTION)).isEqualTo(new WriteResult.Done());
        assertFenced(storage().complete(claim, RESULT, RETENTION), null);
        assertFenced(storage().release(claim, RETENTION), null);
        assertFenced(storage().renew(claim, LONG), null);
        assertState(State.UNKNOWN, 1);
    }

    /** Only the owner's token completes, renews or releases. */
    @Test
    default void lateOwnerCanDoNothingToItsSuccessor() {
        Claim late = claim(SHORT);
        passTime(SHORT);
        Claim successor = claimed(storage().claim(takeOver(newOwner(), LONG)));

        assertFenced(storage().complete(late, OTHER_RESULT, RETENTION), null);
        assertFenced(storage().renew(late, LONG), null);
        assertFenced(storage().release(late, RETENTION), null);
        assertFenced(storage().markUnknown(late, RETENTION), null);
        assertState(State.IN_PROGRESS, 2);

        assertThat(storage().complete(successor, RESULT, RETENTION)).isEqualTo(new WriteResult.Done());
        assertReplays(RESULT);
    }

    @Test
    default void lateOwnerGetsTheResultOfItsSuccessor() {
        Claim late = claim(SHORT);
        passTime(SHORT);
        Claim successor = claimed(storage().claim(takeOver(newOwner(), LONG)));
        storage().complete(successor, RESULT, RETENTION);

        assertFenced(storage().complete(late, OTHER_RESULT, RETENTION), RESULT);
        assertFenced(storage().release(late, RETENTION), RESULT);
        assertReplays(RESULT);
    }

    @Test
    default void lateOwnerNeverSeesTheResultOfAnotherRequest() {
        Claim late = claim(LONG);
        storage().delete(key());
        Claim other = claimed(storage().claim(new ClaimRequest(key(), OTHER, newOwner(), LONG, RETENTION, false)));
        storage().complete(other, RESULT, RETENTION);

        assertFenced(storage().complete(late, OTHER_RESULT, RETENTION), null);
    }

    @Test
    default void ownerOfALostRecordCannotTouchItsNewOwner() {
        Claim lost = claim(LONG);
        storage().delete(key());
        Claim now = claim(LONG);
        assertThat(now.fence()).isEqualTo(lost.fence());

        assertFenced(storage().complete(lost, OTHER_RESULT, RETENTION), null);
        assertFenced(storage().release(lost, RETENTION), null);
        assertThat(storage().complete(now, RESULT, RETENTION)).isEqualTo(new WriteResult.Done());
    }
}
