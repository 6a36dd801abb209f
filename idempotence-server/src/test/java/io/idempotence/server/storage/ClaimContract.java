package io.idempotence.server.storage;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Claims (T1 to T8, T18): who may run, and what a claim returns about the one before it. */
interface ClaimContract extends StorageUnderTest {
    @Test
    default void firstClaimRunsWithFenceOne() {
        Owner owner = newOwner();
        ClaimResult result = storage().claim(request(owner, LONG));

        assertThat(result).isEqualTo(new ClaimResult.Claimed(new Claim(key(), PAY, owner, 1), false));
        assertState(State.IN_PROGRESS, 1);
    }

    @Test
    default void sameOwnerSecondClaimRunsWithTheSameFence() {
        ClaimRequest request = request(newOwner(), LONG);
        ClaimResult first = storage().claim(request);

        assertThat(storage().claim(request)).isEqualTo(first);
        assertState(State.IN_PROGRESS, 1);
    }

    @Test
    default void sameOwnerSecondClaimLetsTheLeaseRunAnew() {
        Owner owner = newOwner();
        storage().claim(request(owner, SHORT));
        storage().claim(request(owner, LONG));
        passTime(SHORT);

        assertThat(storage().claim(request(newOwner(), LONG))).isInstanceOf(ClaimResult.InProgress.class);
    }

    @Test
    default void claimOfALiveClaimReportsHowMuchOfTheLeaseIsLeft() {
        claim(LONG);

        ClaimResult result = storage().claim(takeOver(newOwner(), LONG));

        assertThat(result)
                .isInstanceOfSatisfying(
                        ClaimResult.InProgress.class,
                        inProgress -> assertThat(inProgress.leaseLeft()).isBetween(LONG.minusMinutes(1), LONG));
    }

    @Test
    default void otherFingerprintIsAReusedKeyInEveryState() {
        Claim live = claim(LONG);
        assertKeyReused(live.owner());

        storage().release(live, RETENTION);
        assertKeyReused(live.owner());

        Claim unknown = claim(LONG);
        storage().markUnknown(unknown, RETENTION);
        assertKeyReused(unknown.owner());

        storage().delete(key());
        Claim abandoned = claim(SHORT);
        passTime(SHORT);
        assertState(State.ABANDONED, 1);
        assertKeyReused(abandoned.owner());

        storage().complete(abandoned, RESULT, RETENTION);
        assertKeyReused(abandoned.owner());
        assertThat(storage().claim(request(newOwner(), LONG))).isInstanceOf(ClaimResult.Completed.class);
    }

    @Test
    default void fingerprintsThatDifferInTheirLastByteOnlyAreDifferent() {
        byte[] bytes = PAY.toBytes();
        bytes[Fingerprint.BYTES - 1]++;
        claim(LONG);

        assertThat(storage().claim(new ClaimRequest(key(), Fingerprint.of(bytes), newOwner(), LONG, RETENTION, false)))
                .isEqualTo(new ClaimResult.KeyReused());
    }

    @Test
    default void completedIdIsReplayed() {
        storage().complete(claim(LONG), RESULT, RETENTION);

        assertReplays(RESULT);
        assertState(State.COMPLETED, 1);
    }

    @Test
    default void ownerThatClaimsAgainAfterItCompletedGetsItsOwnResult() {
        Claim claim = claim(LONG);
        storage().complete(claim, RESULT, RETENTION);

        assertCompleted(storage().claim(request(claim.owner(), LONG)), RESULT);
    }

    /** Overridden where an abandoned claim has done nothing for certain. */
    @Test
    default void abandonedClaimIsReportedAndNotTakenOver() {
        claim(SHORT);
        passTime(SHORT);

        assertThat(storage().claim(request(newOwner(), LONG))).isEqualTo(new ClaimResult.Abandoned(1));
        assertThat(storage().claim(request(newOwner(), LONG))).isEqualTo(new ClaimResult.Abandoned(1));
        assertState(State.ABANDONED, 1);
        assertThat(storage().find(key()).orElseThrow().leaseLeft()).isLessThanOrEqualTo(Duration.ZERO);
    }

    @Test
    default void abandonedClaimIsTakenOverWhereThatIsAllowed() {
        claim(SHORT);
        passTime(SHORT);
        Owner heir = newOwner();

        assertThat(storage().claim(takeOver(heir, LONG)))
                .isEqualTo(new ClaimResult.Claimed(new Claim(key(), PAY, heir, 2), true));
        assertState(State.IN_PROGRESS, 2);
    }

    @Test
    default void takeOverThatIsSentAgainReportsAgainThatItIsOne() {
        claim(SHORT);
        passTime(SHORT);
        ClaimRequest request = takeOver(newOwner(), LONG);
        ClaimResult first = storage().claim(request);

        assertThat(storage().claim(request)).isEqualTo(first);
        assertThat(((ClaimResult.Claimed) first).takenOver()).isTrue();
    }

    @Test
    default void renewingATakeOverDoesNotForgetThatItIsOne() {
        claim(SHORT);
        passTime(SHORT);
        ClaimRequest request = takeOver(newOwner(), LONG);
        ClaimResult.Claimed first = (ClaimResult.Claimed) storage().claim(request);
        storage().renew(first.claim(), LONG);

        assertThat(storage().claim(request)).isEqualTo(first);
    }

    @Test
    default void releasedIdRunsAgainWithTheNextFence() {
        storage().release(claim(LONG), RETENTION);
        assertState(State.RELEASED, 1);
        Owner next = newOwner();

        assertThat(storage().claim(request(next, LONG)))
                .isEqualTo(new ClaimResult.Claimed(new Claim(key(), PAY, next, 2), false));
    }

    @Test
    default void unknownIdNeverRuns() {
        Claim claim = claim(SHORT);
        assertThat(storage().markUnknown(claim, RETENTION)).isEqualTo(new WriteResult.Done());
        passTime(SHORT);

        assertThat(storage().claim(request(newOwner(), LONG))).isEqualTo(new ClaimResult.Unknown());
        assertThat(storage().claim(takeOver(newOwner(), LONG))).isEqualTo(new ClaimResult.Unknown());
        assertThat(storage().claim(takeOver(claim.owner(), LONG))).isEqualTo(new ClaimResult.Unknown());
        assertState(State.UNKNOWN, 1);
    }

    @Test
    default void idsAreStrangersToEachOther() {
        storage().complete(claim(LONG), RESULT, RETENTION);
        use(newKey());

        assertThat(claim(LONG).fence()).isEqualTo(1);
    }

    @Test
    default void fenceGrowsOverReleasesAndTakeOversAndNeverGoesDown() {
        for (long fence = 1; fence <= 8; fence++) {
            boolean abandon = fence % 2 == 0;
            Claim claim = claimed(storage().claim(takeOver(newOwner(), abandon ? SHORT : LONG)));
            assertThat(claim.fence()).isEqualTo(fence);
            if (abandon) {
                passTime(SHORT);
            } else {
                storage().release(claim, RETENTION);
            }
        }
    }

    @Test
    default void ownersAndFingerprintsOfAnyBytesAreDistinguished() {
        for (int b : new int[] {0, 10, 13, 127, 128, 255}) {
            use(newKey());
            byte[] bytes = new byte[Fingerprint.BYTES];
            Arrays.fill(bytes, (byte) b);
            Fingerprint fingerprint = Fingerprint.of(bytes);
            long word = 0x0101010101010101L * b;
            Owner owner = new Owner(word, word);
            Claim claim = claimed(storage().claim(new ClaimRequest(key(), fingerprint, owner, LONG, RETENTION, false)));

            for (Owner almost : List.of(new Owner(word, word ^ 1), new Owner(word ^ Long.MIN_VALUE, word))) {
                assertThat(storage().claim(new ClaimRequest(key(), fingerprint, almost, LONG, RETENTION, true)))
                        .isInstanceOf(ClaimResult.InProgress.class);
                assertFenced(storage().complete(new Claim(key(), fingerprint, almost, 1), RESULT, RETENTION), null);
            }
            assertThat(storage().complete(claim, RESULT, RETENTION)).isEqualTo(new WriteResult.Done());
        }
    }

    /** The packet of a claim may be delivered twice, the second time after everything is over. */
    @Test
    default void aClaimThatArrivesAgainAfterItsReleaseClaimsNothing() {
        ClaimRequest request = request(newOwner(), LONG);
        storage().release(claimed(storage().claim(request)), RETENTION);

        assertThat(storage().claim(request)).isInstanceOf(ClaimResult.InProgress.class);
        assertState(State.RELEASED, 1);

        Claim next = claim(LONG);
        assertThat(next.fence()).isEqualTo(2);
        assertThat(storage().claim(request)).isInstanceOf(ClaimResult.InProgress.class);
        storage().complete(next, RESULT, RETENTION);
        assertCompleted(storage().claim(request), RESULT);
    }

    /** After a take-over and a release there is no owner to take over from. The fence shows that this is not the first execution. */
    @Test
    default void theFenceCountsExecutionsBeforeARelease() {
        claim(SHORT);
        passTime(SHORT);
        Claim takenOver = claimed(storage().claim(takeOver(newOwner(), LONG)));
        storage().release(takenOver, RETENTION);

        ClaimResult.Claimed next = (ClaimResult.Claimed) storage().claim(request(newOwner(), LONG));

        assertThat(next.takenOver()).isFalse();
        assertThat(next.claim().fence()).isEqualTo(3);
    }
}
