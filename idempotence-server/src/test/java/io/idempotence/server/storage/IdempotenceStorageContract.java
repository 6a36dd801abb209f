package io.idempotence.server.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.IdempotenceId;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The behaviour every {@link IdempotenceStorage} shares. Extend it, say how to create one and how time passes. */
public abstract class IdempotenceStorageContract {
    private static final Duration LONG = Duration.ofMinutes(10);
    private static final Duration RETENTION = Duration.ofHours(1);
    private static final Duration SHORT = Duration.ofMillis(60);

    private static final SecureRandom RANDOM = new SecureRandom();
    private static final Fingerprint PAY = fingerprint(1);
    private static final Fingerprint OTHER = fingerprint(2);
    private static final byte[] RESULT = "201 Created".getBytes(StandardCharsets.UTF_8);
    private static final byte[] OTHER_RESULT = "500 Oops".getBytes(StandardCharsets.UTF_8);

    private IdempotenceStorage storage;
    private StorageKey key;

    /** A storage, empty or shared with other tests, that is closed after the test. */
    protected abstract IdempotenceStorage createStorage();

    /** Returns when the storage's own clock has gone on by at least {@code duration}. */
    protected abstract void letPass(Duration duration);

    @BeforeEach
    void open() {
        storage = createStorage();
        key = newKey();
    }

    @AfterEach
    void close() {
        storage.close();
        storage.close();
    }

    // ---- claim: T1 to T8, T18

    @Test
    void firstClaimRunsWithFenceOne() {
        Owner owner = newOwner();
        ClaimResult result = storage.claim(request(owner, LONG));

        assertThat(result).isEqualTo(new ClaimResult.Claimed(new Claim(key, PAY, owner, 1), false));
        assertState(RecordState.IN_PROGRESS, 1);
    }

    @Test
    void sameOwnerSecondClaimRunsWithTheSameFence() {
        ClaimRequest request = request(newOwner(), LONG);
        ClaimResult first = storage.claim(request);

        assertThat(storage.claim(request)).isEqualTo(first);
        assertState(RecordState.IN_PROGRESS, 1);
    }

    @Test
    void sameOwnerSecondClaimLetsTheLeaseRunAnew() {
        Owner owner = newOwner();
        storage.claim(request(owner, SHORT));
        storage.claim(request(owner, LONG));
        letPass(SHORT);

        assertThat(storage.claim(request(newOwner(), LONG))).isInstanceOf(ClaimResult.InProgress.class);
    }

    @Test
    void claimOfALiveClaimSaysHowMuchOfTheLeaseIsLeft() {
        claim(LONG);

        ClaimResult result = storage.claim(takeOver(newOwner(), LONG));

        assertThat(result)
                .isInstanceOfSatisfying(
                        ClaimResult.InProgress.class,
                        inProgress -> assertThat(inProgress.leaseLeft()).isBetween(LONG.minusMinutes(1), LONG));
    }

    @Test
    void otherFingerprintIsAMismatchInEveryState() {
        Claim live = claim(LONG);
        assertMismatch(live.owner());

        storage.release(live, RETENTION);
        assertMismatch(live.owner());

        Claim unknown = claim(LONG);
        storage.markUnknown(unknown, RETENTION);
        assertMismatch(unknown.owner());

        storage.delete(key);
        Claim abandoned = claim(SHORT);
        letPass(SHORT);
        assertState(RecordState.ABANDONED, 1);
        assertMismatch(abandoned.owner());

        storage.complete(abandoned, RESULT, RETENTION);
        assertMismatch(abandoned.owner());
        assertThat(storage.claim(request(newOwner(), LONG))).isInstanceOf(ClaimResult.Completed.class);
    }

    private void assertMismatch(Owner formerOwner) {
        Optional<IdempotenceRecord> before = storage.find(key);
        for (Owner owner : List.of(newOwner(), formerOwner)) {
            ClaimResult result = storage.claim(new ClaimRequest(key, OTHER, owner, LONG, RETENTION, true));
            assertThat(result).isEqualTo(new ClaimResult.Mismatch());
        }
        assertThat(storage.find(key).map(IdempotenceRecord::state)).isEqualTo(before.map(IdempotenceRecord::state));
        assertThat(storage.find(key).map(IdempotenceRecord::fence)).isEqualTo(before.map(IdempotenceRecord::fence));
    }

    @Test
    void fingerprintsThatDifferInTheirLastByteOnlyAreDifferent() {
        byte[] bytes = PAY.toBytes();
        bytes[Fingerprint.BYTES - 1]++;
        claim(LONG);

        assertThat(storage.claim(new ClaimRequest(key, Fingerprint.of(bytes), newOwner(), LONG, RETENTION, false)))
                .isEqualTo(new ClaimResult.Mismatch());
    }

    @Test
    void completedIdIsReplayed() {
        storage.complete(claim(LONG), RESULT, RETENTION);

        assertReplays(RESULT);
        assertState(RecordState.COMPLETED, 1);
    }

    @Test
    void ownerThatClaimsAgainAfterItCompletedGetsItsOwnResult() {
        Claim claim = claim(LONG);
        storage.complete(claim, RESULT, RETENTION);

        assertCompleted(storage.claim(request(claim.owner(), LONG)), RESULT);
    }

    /** Overridden where an abandoned claim has done nothing for certain. */
    @Test
    protected void abandonedClaimIsReportedAndNotTakenOver() {
        claim(SHORT);
        letPass(SHORT);

        assertThat(storage.claim(request(newOwner(), LONG))).isEqualTo(new ClaimResult.Abandoned(1));
        assertThat(storage.claim(request(newOwner(), LONG))).isEqualTo(new ClaimResult.Abandoned(1));
        assertState(RecordState.ABANDONED, 1);
        assertThat(storage.find(key).orElseThrow().leaseLeft()).isLessThanOrEqualTo(Duration.ZERO);
    }

    @Test
    void abandonedClaimIsTakenOverWhereThatIsAllowed() {
        claim(SHORT);
        letPass(SHORT);
        Owner heir = newOwner();

        assertThat(storage.claim(takeOver(heir, LONG)))
                .isEqualTo(new ClaimResult.Claimed(new Claim(key, PAY, heir, 2), true));
        assertState(RecordState.IN_PROGRESS, 2);
    }

    @Test
    void takeOverThatIsSentAgainSaysAgainThatItIsOne() {
        claim(SHORT);
        letPass(SHORT);
        ClaimRequest request = takeOver(newOwner(), LONG);
        ClaimResult first = storage.claim(request);

        assertThat(storage.claim(request)).isEqualTo(first);
        assertThat(((ClaimResult.Claimed) first).takenOver()).isTrue();
    }

    @Test
    void renewingATakeOverDoesNotForgetThatItIsOne() {
        claim(SHORT);
        letPass(SHORT);
        ClaimRequest request = takeOver(newOwner(), LONG);
        ClaimResult.Claimed first = (ClaimResult.Claimed) storage.claim(request);
        storage.renew(first.claim(), LONG);

        assertThat(storage.claim(request)).isEqualTo(first);
    }

    @Test
    void releasedIdRunsAgainWithTheNextFence() {
        storage.release(claim(LONG), RETENTION);
        assertState(RecordState.RELEASED, 1);
        Owner next = newOwner();

        assertThat(storage.claim(request(next, LONG)))
                .isEqualTo(new ClaimResult.Claimed(new Claim(key, PAY, next, 2), false));
    }

    @Test
    void unknownIdNeverRuns() {
        Claim claim = claim(SHORT);
        assertThat(storage.markUnknown(claim, RETENTION)).isEqualTo(new WriteResult.Done());
        letPass(SHORT);

        assertThat(storage.claim(request(newOwner(), LONG))).isEqualTo(new ClaimResult.Unknown());
        assertThat(storage.claim(takeOver(newOwner(), LONG))).isEqualTo(new ClaimResult.Unknown());
        assertThat(storage.claim(takeOver(claim.owner(), LONG))).isEqualTo(new ClaimResult.Unknown());
        assertState(RecordState.UNKNOWN, 1);
    }

    @Test
    void idsAreStrangersToEachOther() {
        storage.complete(claim(LONG), RESULT, RETENTION);
        key = newKey();

        assertThat(claim(LONG).fence()).isEqualTo(1);
    }

    // ---- renew: T9, T14, T16

    @Test
    void renewedLeaseRunsFromNowOn() {
        Claim claim = claim(SHORT);
        assertThat(storage.renew(claim, LONG)).isEqualTo(new WriteResult.Done());
        letPass(SHORT);

        assertThat(storage.claim(takeOver(newOwner(), LONG)))
                .isInstanceOfSatisfying(
                        ClaimResult.InProgress.class,
                        inProgress -> assertThat(inProgress.leaseLeft()).isBetween(LONG.minusMinutes(1), LONG));
    }

    @Test
    void ownerPastItsLeaseMayStillRenewUntilSomeoneTakesOver() {
        Claim claim = claim(SHORT);
        letPass(SHORT);

        assertThat(storage.renew(claim, LONG)).isEqualTo(new WriteResult.Done());
        assertState(RecordState.IN_PROGRESS, 1);
    }

    @Test
    void renewedRecordLivesAtLeastAsLongAsItsLease() {
        Duration retention = Duration.ofSeconds(10);
        Claim claim = claimed(storage.claim(new ClaimRequest(key, PAY, newOwner(), SHORT, retention, false)));
        storage.renew(claim, LONG);

        assertThat(storage.find(key).orElseThrow().retentionLeft()).isGreaterThan(LONG.minusMinutes(1));
    }

    @Test
    void renewDoesNotShortenTheRetention() {
        Claim claim = claim(LONG);
        storage.renew(claim, SHORT);
        letPass(SHORT);

        assertState(RecordState.ABANDONED, 1);
        assertThat(storage.find(key).orElseThrow().retentionLeft()).isGreaterThan(RETENTION.minusMinutes(10));
    }

    @Test
    void vanishedRecordCannotBeRenewedOrReleased() {
        Claim claim = claim(LONG);
        storage.delete(key);

        assertThat(storage.renew(claim, LONG)).isEqualTo(new WriteResult.Lost());
        assertThat(storage.release(claim, RETENTION)).isEqualTo(new WriteResult.Lost());
        assertThat(storage.find(key)).isEmpty();
    }

    // ---- complete: T10, T11, T14, T15

    @Test
    void completeAfterTheLeaseSucceedsWhileNobodyTookOver() {
        Claim claim = claim(SHORT);
        letPass(SHORT);

        assertThat(storage.complete(claim, RESULT, RETENTION)).isEqualTo(new WriteResult.Done());
        assertReplays(RESULT);
    }

    @Test
    void completeTwiceIsDone() {
        Claim claim = claim(LONG);

        assertThat(storage.complete(claim, RESULT, RETENTION)).isEqualTo(new WriteResult.Done());
        assertThat(storage.complete(claim, RESULT, RETENTION)).isEqualTo(new WriteResult.Done());
        assertReplays(RESULT);
    }

    @Test
    void provisionalResultIsReplayed() {
        assertThat(storage.completeProvisionally(claim(LONG), RESULT, RETENTION))
                .isEqualTo(new WriteResult.Done());

        assertReplays(RESULT);
        assertState(RecordState.COMPLETED, 1);
        assertThat(storage.resolve(key, 1, Resolution.NOT_APPLIED, RETENTION)).isFalse();
    }

    @Test
    void ownerReplacesItsProvisionalResultOnce() {
        Claim claim = claim(LONG);
        storage.completeProvisionally(claim, RESULT, RETENTION);

        assertThat(storage.complete(claim, OTHER_RESULT, RETENTION)).isEqualTo(new WriteResult.Done());
        assertReplays(OTHER_RESULT);
        // Also when its reply got lost and it is sent again.
        assertThat(storage.complete(claim, RESULT, RETENTION)).isEqualTo(new WriteResult.Done());
        assertReplays(OTHER_RESULT);
        assertState(RecordState.COMPLETED, 1);
    }

    @Test
    void provisionalResultThatComesLateReplacesNothing() {
        Claim claim = claim(LONG);
        storage.completeProvisionally(claim, RESULT, RETENTION);
        assertThat(storage.completeProvisionally(claim, OTHER_RESULT, RETENTION))
                .isEqualTo(new WriteResult.Done());
        assertReplays(RESULT);

        storage.complete(claim, RESULT, RETENTION);
        assertThat(storage.completeProvisionally(claim, OTHER_RESULT, RETENTION))
                .isEqualTo(new WriteResult.Done());
        assertReplays(RESULT);
    }

    @Test
    void provisionalResultIsChangedByItsOwnersCompletionOnly() {
        Claim claim = claim(LONG);
        storage.completeProvisionally(claim, RESULT, RETENTION);

        assertFenced(storage.release(claim, RETENTION), RESULT);
        assertFenced(storage.markUnknown(claim, RETENTION), RESULT);
        assertFenced(storage.renew(claim, LONG), RESULT);
        assertFenced(storage.complete(stranger(), OTHER_RESULT, RETENTION), RESULT);
        assertFenced(storage.completeProvisionally(stranger(), OTHER_RESULT, RETENTION), RESULT);
        assertFenced(storage.complete(withFence(claim, 2), OTHER_RESULT, RETENTION), RESULT);
        storage.claim(takeOver(newOwner(), LONG));
        assertReplays(RESULT);
        assertState(RecordState.COMPLETED, 1);
    }

    @Test
    void provisionalResultOfAVanishedRecordIsStoredAndMayBeReplaced() {
        Claim claim = claim(LONG);
        storage.delete(key);

        assertThat(storage.completeProvisionally(claim, RESULT, RETENTION))
                .isEqualTo(new WriteResult.StoredAfterLoss());
        assertReplays(RESULT);
        assertThat(storage.complete(claim, OTHER_RESULT, RETENTION)).isEqualTo(new WriteResult.Done());
        assertReplays(OTHER_RESULT);
    }

    @Test
    void provisionalResultMayBeEmpty() {
        storage.completeProvisionally(claim(LONG), new byte[0], RETENTION);
        assertReplays(new byte[0]);
    }

    @Test
    void provisionalResultLivesAsLongAsAnyOther() {
        Claim claim = claim(LONG);
        storage.completeProvisionally(claim, RESULT, SHORT);
        letPass(SHORT);

        assertThat(storage.find(key)).isEmpty();
        assertThatThrownBy(() -> storage.completeProvisionally(claim, RESULT, Duration.ZERO))
                .hasMessageContaining("1 ms");
    }

    @Test
    void completedRecordNeverChanges() {
        Claim claim = claim(LONG);
        storage.complete(claim, RESULT, RETENTION);

        storage.complete(claim, OTHER_RESULT, RETENTION);
        assertFenced(storage.release(claim, RETENTION), RESULT);
        assertFenced(storage.markUnknown(claim, RETENTION), RESULT);
        assertFenced(storage.renew(claim, LONG), RESULT);
        assertFenced(storage.complete(stranger(), OTHER_RESULT, RETENTION), RESULT);
        assertFenced(storage.complete(withFence(claim, 2), OTHER_RESULT, RETENTION), RESULT);
        storage.claim(takeOver(newOwner(), LONG));
        assertReplays(RESULT);
        assertState(RecordState.COMPLETED, 1);
    }

    @Test
    void completeOfAVanishedRecordIsStoredAndReplayed() {
        Claim claim = claim(LONG);
        storage.delete(key);

        assertThat(storage.complete(claim, RESULT, RETENTION)).isEqualTo(new WriteResult.StoredAfterLoss());
        assertReplays(RESULT);
        assertThat(storage.complete(claim, RESULT, RETENTION)).isEqualTo(new WriteResult.Done());
    }

    @Test
    void fenceDoesNotGoDownWhenAVanishedRecordIsStoredAnew() {
        storage.release(claim(LONG), RETENTION);
        Claim second = claim(LONG);
        storage.delete(key);
        storage.complete(second, RESULT, RETENTION);

        assertState(RecordState.COMPLETED, 2);
    }

    @Test
    void vanishedRecordIsMarkedUnknownAnew() {
        Claim claim = claim(LONG);
        storage.delete(key);

        assertThat(storage.markUnknown(claim, RETENTION)).isEqualTo(new WriteResult.StoredAfterLoss());
        assertThat(storage.claim(takeOver(newOwner(), LONG))).isEqualTo(new ClaimResult.Unknown());
    }

    // ---- release and unknown: T12, T13

    @Test
    void releaseTwiceIsDone() {
        Claim claim = claim(LONG);

        assertThat(storage.release(claim, RETENTION)).isEqualTo(new WriteResult.Done());
        assertThat(storage.release(claim, RETENTION)).isEqualTo(new WriteResult.Done());
        assertState(RecordState.RELEASED, 1);
    }

    @Test
    void releaseSentAgainDoesNotTouchTheNextClaim() {
        Claim first = claim(LONG);
        storage.release(first, RETENTION);
        Claim second = claim(LONG);

        assertFenced(storage.release(first, RETENTION), null);
        assertState(RecordState.IN_PROGRESS, 2);
        assertThat(storage.complete(second, RESULT, RETENTION)).isEqualTo(new WriteResult.Done());
    }

    @Test
    void releaseSentAgainShowsThatALaterClaimFollowed() {
        Claim first = claim(LONG);
        storage.release(first, RETENTION);
        Claim second = claim(LONG);
        assertThat(fence(storage.release(first, RETENTION))).isEqualTo(2);

        storage.complete(second, RESULT, RETENTION);
        assertThat(fence(storage.release(first, RETENTION))).isEqualTo(2);
    }

    @Test
    void releaseOfAVanishedRecordShowsThatNoLaterClaimFollowed() {
        Claim lost = claim(LONG);
        storage.delete(key);
        claim(LONG);

        assertThat(fence(storage.release(lost, RETENTION))).isEqualTo(lost.fence());
    }

    private static long fence(WriteResult result) {
        return ((WriteResult.Fenced) result).fence();
    }

    @Test
    void sameOwnersOtherFenceIsFencedOff() {
        storage.release(claim(LONG), RETENTION);
        Claim second = claim(LONG);
        assertThat(second.fence()).isEqualTo(2);

        assertFenced(storage.complete(withFence(second, 1), RESULT, RETENTION), null);
        assertFenced(storage.release(withFence(second, 1), RETENTION), null);
        assertState(RecordState.IN_PROGRESS, 2);
    }

    @Test
    void releasedClaimCannotBeCompletedRenewedOrMarked() {
        Claim claim = claim(LONG);
        storage.release(claim, RETENTION);

        assertFenced(storage.complete(claim, RESULT, RETENTION), null);
        assertFenced(storage.renew(claim, LONG), null);
        assertFenced(storage.markUnknown(claim, RETENTION), null);
        assertState(RecordState.RELEASED, 1);
    }

    @Test
    void unknownTwiceIsDoneAndNothingElseFollows() {
        Claim claim = claim(LONG);
        storage.markUnknown(claim, RETENTION);

        assertThat(storage.markUnknown(claim, RETENTION)).isEqualTo(new WriteResult.Done());
        assertFenced(storage.complete(claim, RESULT, RETENTION), null);
        assertFenced(storage.release(claim, RETENTION), null);
        assertFenced(storage.renew(claim, LONG), null);
        assertState(RecordState.UNKNOWN, 1);
    }

    // ---- the late owner: T14

    /** Only the owner's token completes, renews or releases. */
    @Test
    void lateOwnerCanDoNothingToItsSuccessor() {
        Claim late = claim(SHORT);
        letPass(SHORT);
        Claim successor = claimed(storage.claim(takeOver(newOwner(), LONG)));

        assertFenced(storage.complete(late, OTHER_RESULT, RETENTION), null);
        assertFenced(storage.renew(late, LONG), null);
        assertFenced(storage.release(late, RETENTION), null);
        assertFenced(storage.markUnknown(late, RETENTION), null);
        assertState(RecordState.IN_PROGRESS, 2);

        assertThat(storage.complete(successor, RESULT, RETENTION)).isEqualTo(new WriteResult.Done());
        assertReplays(RESULT);
    }

    @Test
    void lateOwnerGetsTheResultOfItsSuccessor() {
        Claim late = claim(SHORT);
        letPass(SHORT);
        Claim successor = claimed(storage.claim(takeOver(newOwner(), LONG)));
        storage.complete(successor, RESULT, RETENTION);

        assertFenced(storage.complete(late, OTHER_RESULT, RETENTION), RESULT);
        assertFenced(storage.release(late, RETENTION), RESULT);
        assertReplays(RESULT);
    }

    @Test
    void lateOwnerNeverSeesTheResultOfAnotherRequest() {
        Claim late = claim(LONG);
        storage.delete(key);
        Claim other = claimed(storage.claim(new ClaimRequest(key, OTHER, newOwner(), LONG, RETENTION, false)));
        storage.complete(other, RESULT, RETENTION);

        assertFenced(storage.complete(late, OTHER_RESULT, RETENTION), null);
    }

    @Test
    void ownerOfALostRecordCannotTouchItsNewOwner() {
        Claim lost = claim(LONG);
        storage.delete(key);
        Claim now = claim(LONG);
        assertThat(now.fence()).isEqualTo(lost.fence());

        assertFenced(storage.complete(lost, OTHER_RESULT, RETENTION), null);
        assertFenced(storage.release(lost, RETENTION), null);
        assertThat(storage.complete(now, RESULT, RETENTION)).isEqualTo(new WriteResult.Done());
    }

    // ---- fence, delete, retention: T19

    @Test
    void fenceGrowsOverReleasesAndTakeOversAndNeverGoesDown() {
        for (long fence = 1; fence <= 8; fence++) {
            boolean abandon = fence % 2 == 0;
            Claim claim = claimed(storage.claim(takeOver(newOwner(), abandon ? SHORT : LONG)));
            assertThat(claim.fence()).isEqualTo(fence);
            if (abandon) {
                letPass(SHORT);
            } else {
                storage.release(claim, RETENTION);
            }
        }
    }

    @Test
    void deletedIdStartsAnew() {
        storage.release(claim(LONG), RETENTION);
        storage.complete(claim(LONG), RESULT, RETENTION);

        assertThat(storage.delete(key)).isTrue();
        assertThat(storage.find(key)).isEmpty();
        assertThat(storage.delete(key)).isFalse();
        assertThat(claim(LONG).fence()).isEqualTo(1);
    }

    @Test
    void recordIsGoneAfterItsRetentionInEveryState() {
        claimed(storage.claim(new ClaimRequest(key, PAY, newOwner(), SHORT, SHORT, false)));
        assertGoneAfter(SHORT);
        storage.complete(claim(LONG), RESULT, SHORT);
        assertGoneAfter(SHORT);
        storage.release(claim(LONG), SHORT);
        assertGoneAfter(SHORT);
        storage.markUnknown(claim(LONG), SHORT);
        assertGoneAfter(SHORT);
        assertThat(claim(LONG).fence()).isEqualTo(1);
    }

    private void assertGoneAfter(Duration retention) {
        letPass(retention);
        assertThat(storage.find(key)).isEmpty();
        assertThat(storage.delete(key)).isFalse();
    }

    @Test
    void abandonedRecordOutlivesItsLease() {
        claim(SHORT);
        letPass(SHORT.multipliedBy(3));

        assertState(RecordState.ABANDONED, 1);
        assertThat(storage.find(key).orElseThrow().retentionLeft()).isBetween(RETENTION.minusMinutes(1), RETENTION);
    }

    @Test
    void retentionRunsAnewFromEachWrite() {
        Claim claim = claimed(storage.claim(new ClaimRequest(key, PAY, newOwner(), SHORT, RETENTION, false)));
        storage.complete(claim, RESULT, RETENTION.multipliedBy(2));

        assertThat(storage.find(key).orElseThrow().retentionLeft())
                .isBetween(RETENTION.multipliedBy(2).minusMinutes(1), RETENTION.multipliedBy(2));
    }

    @Test
    void findReturnsNothingForAnIdThatWasNeverClaimedAndChangesNothing() {
        assertThat(storage.find(key)).isEmpty();
        assertThat(storage.find(key)).isEmpty();
        assertThat(claim(LONG).fence()).isEqualTo(1);
    }

    @Test
    void hugeDurationsAreNoError() {
        Duration huge = Duration.ofSeconds(Long.MAX_VALUE);
        Claim claim =
                claimed(storage.claim(new ClaimRequest(key, PAY, newOwner(), Duration.ofDays(9_999_999), huge, false)));
        storage.renew(claim, huge);

        assertThat(storage.complete(claim, RESULT, huge)).isEqualTo(new WriteResult.Done());
        assertReplays(RESULT);
    }

    @Test
    void durationsUnderOneMillisecondAreRefusedAndChangeNothing() {
        Claim claim = claim(LONG);
        for (Duration tooShort : List.of(Duration.ZERO, Duration.ofMillis(-1), Duration.ofNanos(999_999))) {
            assertThatThrownBy(() -> storage.complete(claim, RESULT, tooShort)).hasMessageContaining("1 ms");
            assertThatThrownBy(() -> new CompletionRequest(claim, RESULT, tooShort))
                    .hasMessageContaining("1 ms");
            assertThatThrownBy(() -> storage.release(claim, tooShort)).hasMessageContaining("1 ms");
            assertThatThrownBy(() -> storage.markUnknown(claim, tooShort)).hasMessageContaining("1 ms");
            assertThatThrownBy(() -> storage.renew(claim, tooShort)).hasMessageContaining("1 ms");
        }
        assertState(RecordState.IN_PROGRESS, 1);
    }

    // ---- bytes

    @Test
    void resultsComeBackByteForByte() {
        byte[] all = new byte[256];
        for (int i = 0; i < all.length; i++) {
            all[i] = (byte) i;
        }
        byte[] mebibyte = new byte[1 << 20];
        RANDOM.nextBytes(mebibyte);
        byte[] nine = new byte[9];
        for (byte[] result : List.of(new byte[0], new byte[1], new byte[8], nine, all, mebibyte)) {
            key = newKey();
            Claim claim = claim(LONG);
            storage.complete(claim, result, RETENTION);
            assertReplays(result);
            assertFenced(storage.release(stranger(), RETENTION), result);
        }
    }

    @Test
    void ownersAndFingerprintsOfAnyBytesAreDistinguished() {
        for (int b : new int[] {0, 10, 13, 127, 128, 255}) {
            key = newKey();
            byte[] bytes = new byte[Fingerprint.BYTES];
            Arrays.fill(bytes, (byte) b);
            Fingerprint fingerprint = Fingerprint.of(bytes);
            long word = 0x0101010101010101L * b;
            Owner owner = new Owner(word, word);
            Claim claim = claimed(storage.claim(new ClaimRequest(key, fingerprint, owner, LONG, RETENTION, false)));

            for (Owner almost : List.of(new Owner(word, word ^ 1), new Owner(word ^ Long.MIN_VALUE, word))) {
                assertThat(storage.claim(new ClaimRequest(key, fingerprint, almost, LONG, RETENTION, true)))
                        .isInstanceOf(ClaimResult.InProgress.class);
                assertFenced(storage.complete(new Claim(key, fingerprint, almost, 1), RESULT, RETENTION), null);
            }
            assertThat(storage.complete(claim, RESULT, RETENTION)).isEqualTo(new WriteResult.Done());
        }
    }

    // ---- completions that are sent together

    @Test
    void completionsThatAreSentTogetherEachHaveTheirOwnOutcome() {
        Claim own = claim(LONG);
        key = newKey();
        Claim completed = claim(LONG);
        storage.complete(completed, OTHER_RESULT, RETENTION);
        Claim late = stranger();
        key = newKey();
        Claim gone = claim(LONG);
        storage.delete(key);
        key = newKey();
        Claim replaced = claim(LONG);
        storage.completeProvisionally(replaced, OTHER_RESULT, RETENTION);

        List<CompletionRequest> requests = Stream.of(own, completed, late, gone, replaced)
                .map(claim -> new CompletionRequest(claim, RESULT, RETENTION))
                .toList();
        List<WriteResult> written =
                storage.completeAll(requests).stream().map(Supplier::get).toList();

        WriteResult done = new WriteResult.Done();
        assertThat(written).hasSize(5);
        assertThat(written.subList(0, 2)).containsExactly(done, done);
        assertFenced(written.get(2), OTHER_RESULT);
        assertThat(written.subList(3, 5)).containsExactly(new WriteResult.StoredAfterLoss(), done);
        for (Claim claim : List.of(own, gone, replaced)) {
            key = claim.key();
            assertReplays(RESULT);
        }
        key = completed.key();
        assertReplays(OTHER_RESULT);
    }

    @Test
    void completionsThatAreSentTogetherOnceMoreChangeNothing() {
        int most = storage.completionsPerRoundTrip();
        assertThat(most).isPositive();
        List<CompletionRequest> requests = new ArrayList<>();
        for (int i = 0; i < most + 3; i++) {
            key = newKey();
            requests.add(new CompletionRequest(claim(LONG), new byte[] {(byte) i}, RETENTION));
        }
        for (int time = 1; time <= 2; time++) {
            assertThat(storage.completeAll(requests))
                    .hasSize(most + 3)
                    .allSatisfy(outcome -> assertThat(outcome.get()).isEqualTo(new WriteResult.Done()));
        }
        for (CompletionRequest request : requests) {
            key = request.claim().key();
            assertReplays(request.result());
        }
    }

    // ---- many at once

    @Test
    void ofAHundredConcurrentClaimsExactlyOneRuns() throws Exception {
        List<Callable<ClaimResult>> attempts = new ArrayList<>();
        CountDownLatch start = new CountDownLatch(1);
        for (int i = 0; i < 100; i++) {
            attempts.add(() -> {
                start.await();
                return storage.claim(request(newOwner(), LONG));
            });
        }

        List<ClaimResult> results = runAll(100, attempts, start);

        assertThat(results).filteredOn(ClaimResult.Claimed.class::isInstance).hasSize(1);
        assertThat(results).filteredOn(ClaimResult.InProgress.class::isInstance).hasSize(99);
    }

    /** A claim is won by the storage's reply only. */
    @Test
    void ofManyConcurrentTakeOversExactlyOneRuns() throws Exception {
        claim(SHORT);
        letPass(SHORT);
        List<Callable<ClaimResult>> attempts = new ArrayList<>();
        CountDownLatch start = new CountDownLatch(1);
        for (int i = 0; i < 50; i++) {
            attempts.add(() -> {
                start.await();
                return storage.claim(takeOver(newOwner(), LONG));
            });
        }

        List<ClaimResult> results = runAll(50, attempts, start);

        assertThat(results).filteredOn(ClaimResult.Claimed.class::isInstance).hasSize(1);
        assertState(RecordState.IN_PROGRESS, 2);
    }

    /** The invariant of the protocol: executions per ID are at most 1 + take-overs + releases, one at a time. */
    @Test
    void atMostOneLiveClaimWhateverTheInterleaving() throws Exception {
        int threads = 8;
        int ids = 4;
        StorageKey[] keys = new StorageKey[ids];
        AtomicInteger[] running = new AtomicInteger[ids];
        AtomicInteger[] executions = new AtomicInteger[ids];
        AtomicInteger[] releases = new AtomicInteger[ids];
        AtomicLong[] highestFence = new AtomicLong[ids];
        for (int i = 0; i < ids; i++) {
            keys[i] = newKey();
            running[i] = new AtomicInteger();
            executions[i] = new AtomicInteger();
            releases[i] = new AtomicInteger();
            highestFence[i] = new AtomicLong();
        }
        CountDownLatch start = new CountDownLatch(1);
        List<Callable<Integer>> workers = new ArrayList<>();
        for (int t = 0; t < threads; t++) {
            workers.add(() -> {
                start.await();
                ThreadLocalRandom random = ThreadLocalRandom.current();
                for (int round = 0; round < 150; round++) {
                    int i = random.nextInt(ids);
                    ClaimRequest request = new ClaimRequest(keys[i], PAY, newOwner(), LONG, RETENTION, true);
                    if (!(storage.claim(request) instanceof ClaimResult.Claimed claimed)) {
                        continue;
                    }
                    assertThat(running[i].incrementAndGet())
                            .as("claims at once")
                            .isEqualTo(1);
                    executions[i].incrementAndGet();
                    long fence = claimed.claim().fence();
                    assertThat(highestFence[i].getAndSet(fence)).isLessThan(fence);
                    if (random.nextBoolean()) {
                        assertThat(storage.claim(request)).isEqualTo(claimed);
                    }
                    if (random.nextBoolean()) {
                        assertThat(storage.renew(claimed.claim(), LONG)).isEqualTo(new WriteResult.Done());
                    }
                    running[i].decrementAndGet();
                    if (random.nextInt(100) < 97) {
                        releases[i].incrementAndGet();
                        assertThat(storage.release(claimed.claim(), RETENTION)).isEqualTo(new WriteResult.Done());
                    } else {
                        assertThat(storage.complete(claimed.claim(), RESULT, RETENTION))
                                .isEqualTo(new WriteResult.Done());
                    }
                }
                return 0;
            });
        }

        runAll(threads, workers, start);

        for (int i = 0; i < ids; i++) {
            assertThat(executions[i].get()).isLessThanOrEqualTo(1 + releases[i].get());
        }
    }

    private static <T> List<T> runAll(int threads, List<Callable<T>> tasks, CountDownLatch start) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        try {
            List<Future<T>> futures = new ArrayList<>();
            tasks.forEach(task -> futures.add(pool.submit(task)));
            start.countDown();
            List<T> results = new ArrayList<>();
            for (Future<T> future : futures) {
                results.add(future.get());
            }
            return results;
        } finally {
            pool.shutdownNow();
        }
    }

    /** The packet of a claim may be delivered twice, the second time after everything is over. */
    @Test
    void aClaimThatArrivesAgainAfterItsReleaseClaimsNothing() {
        ClaimRequest request = request(newOwner(), LONG);
        storage.release(claimed(storage.claim(request)), RETENTION);

        assertThat(storage.claim(request)).isInstanceOf(ClaimResult.InProgress.class);
        assertState(RecordState.RELEASED, 1);

        Claim next = claim(LONG);
        assertThat(next.fence()).isEqualTo(2);
        assertThat(storage.claim(request)).isInstanceOf(ClaimResult.InProgress.class);
        storage.complete(next, RESULT, RETENTION);
        assertCompleted(storage.claim(request), RESULT);
    }

    /** After a take-over and a release nobody is taken over; the fence tells that it is not the first execution. */
    @Test
    void theFenceTellsOfExecutionsBeforeARelease() {
        claim(SHORT);
        letPass(SHORT);
        Claim takenOver = claimed(storage.claim(takeOver(newOwner(), LONG)));
        storage.release(takenOver, RETENTION);

        ClaimResult.Claimed next = (ClaimResult.Claimed) storage.claim(request(newOwner(), LONG));

        assertThat(next.takenOver()).isFalse();
        assertThat(next.claim().fence()).isEqualTo(3);
    }

    // ---- operators: T17, list

    @Test
    void anUnknownRecordSaysForHowLong() {
        storage.markUnknown(claim(LONG), RETENTION);
        letPass(SHORT);

        assertThat(storage.find(key).orElseThrow().leaseLeft())
                .isLessThanOrEqualTo(SHORT.negated())
                .isGreaterThan(Duration.ofMinutes(-5));
    }

    @Test
    void anUnknownThatWasAppliedIsCompletedWithoutAResult() {
        storage.markUnknown(claim(LONG), RETENTION);

        assertThat(storage.resolve(key, 1, Resolution.APPLIED, RETENTION)).isTrue();

        assertState(RecordState.COMPLETED, 1);
        assertReplays(ClaimResult.noResult());
    }

    @Test
    void anUnknownThatWasNotAppliedRunsAgainWithTheNextFence() {
        storage.markUnknown(claim(LONG), RETENTION);

        assertThat(storage.resolve(key, 1, Resolution.NOT_APPLIED, RETENTION)).isTrue();

        assertState(RecordState.RELEASED, 1);
        assertThat(claim(LONG).fence()).isEqualTo(2);
    }

    @Test
    void anAbandonedRecordIsResolvedEitherWayAndItsLateOwnerIsFenced() {
        for (Resolution resolution : Resolution.values()) {
            key = newKey();
            Claim abandoned = claim(SHORT);
            letPass(SHORT);

            assertThat(storage.resolve(key, 1, resolution, RETENTION)).isTrue();

            assertThat(storage.complete(abandoned, RESULT, RETENTION)).isInstanceOf(WriteResult.Fenced.class);
            assertState(resolution == Resolution.APPLIED ? RecordState.COMPLETED : RecordState.RELEASED, 1);
        }
    }

    @Test
    void aResolutionNeverShortensHowLongARecordLives() {
        for (Resolution resolution : Resolution.values()) {
            key = newKey();
            storage.markUnknown(claim(LONG), Duration.ofDays(29));
            assertThat(storage.resolve(key, 1, resolution, RETENTION)).isTrue();
            assertLivesLongerThan(Duration.ofDays(28));

            key = newKey();
            storage.claim(new ClaimRequest(key, PAY, newOwner(), SHORT, Duration.ofDays(29), false));
            letPass(SHORT);
            assertThat(storage.resolve(key, 1, resolution, RETENTION)).isTrue();
            assertLivesLongerThan(Duration.ofDays(28));
        }
    }

    @Test
    void aResolvedRecordLivesAtLeastAsLongAsItsRetention() {
        for (Resolution resolution : Resolution.values()) {
            key = newKey();
            storage.markUnknown(claim(LONG), RETENTION);

            assertThat(storage.resolve(key, 1, resolution, Duration.ofDays(29))).isTrue();

            assertLivesLongerThan(Duration.ofDays(28));
        }
    }

    @Test
    void aResolvedRecordStillTellsAnotherRequestApart() {
        storage.markUnknown(claim(LONG), RETENTION);
        storage.resolve(key, 1, Resolution.NOT_APPLIED, RETENTION);

        assertMismatch(newOwner());
    }

    @Test
    void onlyWhatIsUncertainIsResolved() {
        assertThat(storage.resolve(key, 1, Resolution.APPLIED, RETENTION))
                .as("absent")
                .isFalse();
        assertThat(storage.find(key)).isEmpty();

        Claim live = claim(LONG);
        assertThat(storage.resolve(key, 1, Resolution.NOT_APPLIED, RETENTION))
                .as("in progress")
                .isFalse();
        assertState(RecordState.IN_PROGRESS, 1);

        storage.release(live, RETENTION);
        assertThat(storage.resolve(key, 1, Resolution.APPLIED, RETENTION))
                .as("released")
                .isFalse();
        assertState(RecordState.RELEASED, 1);

        storage.complete(claim(LONG), RESULT, RETENTION);
        assertThat(storage.resolve(key, 2, Resolution.NOT_APPLIED, RETENTION))
                .as("completed")
                .isFalse();
        assertReplays(RESULT);
    }

    @Test
    void aResolutionOfAnEarlierLookChangesNothing() {
        storage.markUnknown(claim(LONG), RETENTION);

        assertThat(storage.resolve(key, 2, Resolution.APPLIED, RETENTION)).isFalse();
        assertState(RecordState.UNKNOWN, 1);

        assertThat(storage.resolve(key, 1, Resolution.NOT_APPLIED, RETENTION)).isTrue();
        assertThat(storage.resolve(key, 1, Resolution.APPLIED, RETENTION)).isFalse();
        assertState(RecordState.RELEASED, 1);
    }

    @Test
    void aResolutionWithoutRetentionIsRefused() {
        assertThatThrownBy(() -> storage.resolve(key, 1, Resolution.APPLIED, Duration.ZERO))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("retention");
    }

    @Test
    void listsEveryRecordOfANamespaceAndNoOther() {
        String namespace = "list-" + UUID.randomUUID();
        int records = 903;
        Set<StorageKey> keys = new HashSet<>();
        for (int i = 0; i < records; i++) {
            key = StorageKey.of(namespace, "", "", new IdempotenceId("id-" + i));
            keys.add(key);
            Claim claim = claim(LONG);
            if (i % 3 == 0) {
                storage.complete(claim, RESULT, RETENTION);
            } else if (i % 3 == 1) {
                storage.markUnknown(claim, RETENTION);
            }
        }
        key = StorageKey.of(namespace + ".other", "", "", new IdempotenceId("id-1"));
        claim(LONG);

        Map<StorageKey, IdempotenceRecord> listed = new HashMap<>();
        storage.list(namespace).forEach(record -> listed.put(record.key(), record));

        assertThat(listed.keySet()).isEqualTo(keys);
        assertThat(listed.values())
                .filteredOn(record -> record.state() == RecordState.UNKNOWN)
                .hasSize(records / 3);
        IdempotenceRecord found = storage.find(keys.iterator().next()).orElseThrow();
        IdempotenceRecord shown = listed.get(found.key());
        assertThat(shown.state()).isEqualTo(found.state());
        assertThat(shown.fence()).isEqualTo(found.fence());
    }

    @Test
    void aStreamOfRecordsMayBeLeftEarlyOftenWithoutHarm() {
        claim(LONG);
        for (int i = 0; i < 200; i++) {
            assertThat(storage.list("contract").limit(1)).hasSize(1);
        }
    }

    @Test
    void anEmptyNamespaceListsNothingAndAWrongNameIsRefused() {
        assertThat(storage.list("nobody-" + UUID.randomUUID())).isEmpty();
        assertThatThrownBy(() -> storage.list("pay*")).isInstanceOf(IllegalArgumentException.class);
    }

    // ---- words of these tests

    private static StorageKey newKey() {
        return StorageKey.of(
                "contract", "", "", new IdempotenceId(UUID.randomUUID().toString()));
    }

    private static Owner newOwner() {
        return Owner.random(RANDOM);
    }

    private static Fingerprint fingerprint(int seed) {
        byte[] bytes = new byte[Fingerprint.BYTES];
        Arrays.fill(bytes, (byte) seed);
        return Fingerprint.of(bytes);
    }

    private ClaimRequest request(Owner owner, Duration lease) {
        return new ClaimRequest(key, PAY, owner, lease, RETENTION, false);
    }

    private ClaimRequest takeOver(Owner owner, Duration lease) {
        return new ClaimRequest(key, PAY, owner, lease, RETENTION, true);
    }

    private Claim claim(Duration lease) {
        return claimed(storage.claim(request(newOwner(), lease)));
    }

    private static Claim claimed(ClaimResult result) {
        assertThat(result).isInstanceOf(ClaimResult.Claimed.class);
        return ((ClaimResult.Claimed) result).claim();
    }

    private Claim stranger() {
        return new Claim(key, PAY, newOwner(), 1);
    }

    private static Claim withFence(Claim claim, long fence) {
        return new Claim(claim.key(), claim.fingerprint(), claim.owner(), fence);
    }

    private void assertState(RecordState state, long fence) {
        IdempotenceRecord found = storage.find(key).orElseThrow();
        assertThat(found.state()).isEqualTo(state);
        assertThat(found.fence()).isEqualTo(fence);
        assertThat(found.retentionLeft()).isPositive();
        if (state == RecordState.COMPLETED || state == RecordState.RELEASED) {
            assertThat(found.leaseLeft()).isZero();
        }
    }

    private void assertLivesLongerThan(Duration duration) {
        assertThat(storage.find(key).orElseThrow().retentionLeft()).isGreaterThan(duration);
    }

    private void assertReplays(byte[] result) {
        assertCompleted(storage.claim(request(newOwner(), LONG)), result);
        assertCompleted(storage.claim(takeOver(newOwner(), LONG)), result);
    }

    private static void assertCompleted(ClaimResult result, byte[] expected) {
        assertThat(result)
                .isInstanceOfSatisfying(
                        ClaimResult.Completed.class,
                        completed -> assertThat(completed.result()).isEqualTo(expected));
    }

    private static void assertFenced(WriteResult result, byte[] expected) {
        assertThat(result)
                .isInstanceOfSatisfying(
                        WriteResult.Fenced.class,
                        fenced -> assertThat(fenced.result()).isEqualTo(expected));
    }
}
