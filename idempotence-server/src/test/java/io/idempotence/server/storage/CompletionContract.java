package io.idempotence.server.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.server.storage.IdempotenceRecord.Resolution;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage.CompletionRequest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** P4: how a result is stored and replayed: final or provisional, alone or with others (T10, T11, T14, T15). */
interface CompletionContract extends StorageUnderTest {
    @Test
    default void completeAfterTheLeaseSucceedsWhileNobodyTookOver() {
        Claim claim = claim(SHORT);
        passTime(SHORT);

        assertThat(storage().complete(claim, RESULT, RETENTION)).isEqualTo(new WriteResult.Done());
        assertReplays(RESULT);
    }

    @Test
    default void completeTwiceIsDone() {
        Claim claim = claim(LONG);

        assertThat(storage().complete(claim, RESULT, RETENTION)).isEqualTo(new WriteResult.Done());
        assertThat(storage().complete(claim, RESULT, RETENTION)).isEqualTo(new WriteResult.Done());
        assertReplays(RESULT);
    }

    @Test
    default void provisionalResultIsReplayed() {
        assertThat(storage().completeProvisionally(claim(LONG), RESULT, RETENTION))
                .isEqualTo(new WriteResult.Done());

        assertReplays(RESULT);
        assertState(State.COMPLETED, 1);
        assertThat(storage().resolve(key(), 1, Resolution.NOT_APPLIED, RETENTION))
                .isFalse();
    }

    @Test
    default void ownerReplacesItsProvisionalResultOnce() {
        Claim claim = claim(LONG);
        storage().completeProvisionally(claim, RESULT, RETENTION);

        assertThat(storage().complete(claim, OTHER_RESULT, RETENTION)).isEqualTo(new WriteResult.Done());
        assertReplays(OTHER_RESULT);
        // Also when its reply got lost and it is sent again.
        assertThat(storage().complete(claim, RESULT, RETENTION)).isEqualTo(new WriteResult.Done());
        assertReplays(OTHER_RESULT);
        assertState(State.COMPLETED, 1);
    }

    @Test
    default void provisionalResultThatComesLateReplacesNothing() {
        Claim claim = claim(LONG);
        storage().completeProvisionally(claim, RESULT, RETENTION);
        assertThat(storage().completeProvisionally(claim, OTHER_RESULT, RETENTION))
                .isEqualTo(new WriteResult.Done());
        assertReplays(RESULT);

        storage().complete(claim, RESULT, RETENTION);
        assertThat(storage().completeProvisionally(claim, OTHER_RESULT, RETENTION))
                .isEqualTo(new WriteResult.Done());
        assertReplays(RESULT);
    }

    @Test
    default void provisionalResultIsChangedByItsOwnersCompletionOnly() {
        Claim claim = claim(LONG);
        storage().completeProvisionally(claim, RESULT, RETENTION);

        assertFenced(storage().release(claim, RETENTION), RESULT);
        assertFenced(storage().markUnknown(claim, RETENTION), RESULT);
        assertFenced(storage().renew(claim, LONG), RESULT);
        assertFenced(storage().complete(stranger(), OTHER_RESULT, RETENTION), RESULT);
        assertFenced(storage().completeProvisionally(stranger(), OTHER_RESULT, RETENTION), RESULT);
        assertFenced(storage().complete(withFence(claim, 2), OTHER_RESULT, RETENTION), RESULT);
        storage().claim(takeOver(newOwner(), LONG));
        assertReplays(RESULT);
        assertState(State.COMPLETED, 1);
    }

    @Test
    default void provisionalResultOfAVanishedRecordIsStoredAndMayBeReplaced() {
        Claim claim = claim(LONG);
        storage().delete(key());

        assertThat(storage().completeProvisionally(claim, RESULT, RETENTION))
                .isEqualTo(new WriteResult.StoredAfterLoss());
        assertReplays(RESULT);
        assertThat(storage().complete(claim, OTHER_RESULT, RETENTION)).isEqualTo(new WriteResult.Done());
        assertReplays(OTHER_RESULT);
    }

    @Test
    default void provisionalResultMayBeEmpty() {
        storage().completeProvisionally(claim(LONG), new byte[0], RETENTION);
        assertReplays(new byte[0]);
    }

    @Test
    default void provisionalResultLivesAsLongAsAnyOther() {
        Claim claim = claim(LONG);
        storage().completeProvisionally(claim, RESULT, SHORT);
        passTime(SHORT);

        assertThat(storage().find(key())).isEmpty();
        assertThatThrownBy(() -> storage().completeProvisionally(claim, RESULT, Duration.ZERO))
                .hasMessageContaining("1 ms");
    }

    @Test
    default void completedRecordNeverChanges() {
        Claim claim = claim(LONG);
        storage().complete(claim, RESULT, RETENTION);

        storage().complete(claim, OTHER_RESULT, RETENTION);
        assertFenced(storage().release(claim, RETENTION), RESULT);
        assertFenced(storage().markUnknown(claim, RETENTION), RESULT);
        assertFenced(storage().renew(claim, LONG), RESULT);
        assertFenced(storage().complete(stranger(), OTHER_RESULT, RETENTION), RESULT);
        assertFenced(storage().complete(withFence(claim, 2), OTHER_RESULT, RETENTION), RESULT);
        storage().claim(takeOver(newOwner(), LONG));
        assertReplays(RESULT);
        assertState(State.COMPLETED, 1);
    }

    @Test
    default void completeOfAVanishedRecordIsStoredAndReplayed() {
        Claim claim = claim(LONG);
        storage().delete(key());

        assertThat(storage().complete(claim, RESULT, RETENTION)).isEqualTo(new WriteResult.StoredAfterLoss());
        assertReplays(RESULT);
        assertThat(storage().complete(claim, RESULT, RETENTION)).isEqualTo(new WriteResult.Done());
    }

    @Test
    default void fenceDoesNotGoDownWhenAVanishedRecordIsStoredAnew() {
        storage().release(claim(LONG), RETENTION);
        Claim second = claim(LONG);
        storage().delete(key());
        storage().complete(second, RESULT, RETENTION);

        assertState(State.COMPLETED, 2);
    }

    @Test
    default void resultsComeBackByteForByte() {
        byte[] all = new byte[256];
        for (int i = 0; i < all.length; i++) {
            all[i] = (byte) i;
        }
        byte[] mebibyte = new byte[1 << 20];
        RANDOM.nextBytes(mebibyte);
        byte[] nine = new byte[9];
        for (byte[] result : List.of(new byte[0], new byte[1], new byte[8], nine, all, mebibyte)) {
            use(newKey());
            Claim claim = claim(LONG);
            storage().complete(claim, result, RETENTION);
            assertReplays(result);
            assertFenced(storage().release(stranger(), RETENTION), result);
        }
    }

    @Test
    default void completionsThatAreSentTogetherEachHaveTheirOwnOutcome() {
        Claim own = claim(LONG);
        use(newKey());
        Claim completed = claim(LONG);
        storage().complete(completed, OTHER_RESULT, RETENTION);
        Claim late = stranger();
        use(newKey());
        Claim gone = claim(LONG);
        storage().delete(key());
        use(newKey());
        Claim replaced = claim(LONG);
        storage().completeProvisionally(replaced, OTHER_RESULT, RETENTION);

        List<CompletionRequest> requests = Stream.of(own, completed, late, gone, replaced)
                .map(claim -> new CompletionRequest(claim, RESULT, RETENTION))
                .toList();
        List<WriteResult> written =
                storage().completeAll(requests).stream().map(Supplier::get).toList();

        WriteResult done = new WriteResult.Done();
        assertThat(written).hasSize(5);
        assertThat(written.subList(0, 2)).containsExactly(done, done);
        assertFenced(written.get(2), OTHER_RESULT);
        assertThat(written.subList(3, 5)).containsExactly(new WriteResult.StoredAfterLoss(), done);
        for (Claim claim : List.of(own, gone, replaced)) {
            use(claim.key());
            assertReplays(RESULT);
        }
        use(completed.key());
        assertReplays(OTHER_RESULT);
    }

    @Test
    default void completionsThatAreSentTogetherOnceMoreChangeNothing() {
        int most = storage().completionsPerRoundTrip();
        assertThat(most).isPositive();
        List<CompletionRequest> requests = new ArrayList<>();
        for (int i = 0; i < most + 3; i++) {
            use(newKey());
            requests.add(new CompletionRequest(claim(LONG), new byte[] {(byte) i}, RETENTION));
        }
        for (int time = 1; time <= 2; time++) {
            assertThat(storage().completeAll(requests))
                    .hasSize(most + 3)
                    .allSatisfy(outcome -> assertThat(outcome.get()).isEqualTo(new WriteResult.Done()));
        }
        for (CompletionRequest request : requests) {
            use(request.claim().key());
            assertReplays(request.result());
        }
    }
}
