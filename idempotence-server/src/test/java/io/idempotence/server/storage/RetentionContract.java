package io.idempotence.server.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import io.idempotence.server.storage.IdempotenceStorage.CompletionRequest;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The contract of how long a record lives (T19), and what deletes it. */
interface RetentionContract extends StorageUnderTest {
    @Test
    default void deletedIdStartsAnew() {
        storage().release(claim(LONG), RETENTION);
        storage().complete(claim(LONG), RESULT, RETENTION);

        assertThat(storage().delete(key())).isTrue();
        assertThat(storage().find(key())).isEmpty();
        assertThat(storage().delete(key())).isFalse();
        assertThat(claim(LONG).fence()).isEqualTo(1);
    }

    @Test
    default void recordIsGoneAfterItsRetentionInEveryState() {
        claimed(storage().claim(new ClaimRequest(key(), PAY, newOwner(), SHORT, SHORT, false)));
        assertGoneAfter(SHORT);
        storage().complete(claim(LONG), RESULT, SHORT);
        assertGoneAfter(SHORT);
        storage().release(claim(LONG), SHORT);
        assertGoneAfter(SHORT);
        storage().markUnknown(claim(LONG), SHORT);
        assertGoneAfter(SHORT);
        assertThat(claim(LONG).fence()).isEqualTo(1);
    }

    private void assertGoneAfter(Duration retention) {
        passTime(retention);
        assertThat(storage().find(key())).isEmpty();
        assertThat(storage().delete(key())).isFalse();
    }

    @Test
    default void abandonedRecordOutlivesItsLease() {
        claim(SHORT);
        passTime(SHORT.multipliedBy(3));

        assertState(State.ABANDONED, 1);
        assertThat(storage().find(key()).orElseThrow().retentionLeft()).isBetween(RETENTION.minusMinutes(1), RETENTION);
    }

    @Test
    default void retentionRunsAnewFromEachWrite() {
        Claim claim = claimed(storage().claim(new ClaimRequest(key(), PAY, newOwner(), SHORT, RETENTION, false)));
        storage().complete(claim, RESULT, RETENTION.multipliedBy(2));

        assertThat(storage().find(key()).orElseThrow().retentionLeft())
                .isBetween(RETENTION.multipliedBy(2).minusMinutes(1), RETENTION.multipliedBy(2));
    }

    @Test
    default void findReturnsNothingForAnIdThatWasNeverClaimedAndChangesNothing() {
        assertThat(storage().find(key())).isEmpty();
        assertThat(storage().find(key())).isEmpty();
        assertThat(claim(LONG).fence()).isEqualTo(1);
    }

    @Test
    default void hugeDurationsAreNoError() {
        Duration huge = Duration.ofSeconds(Long.MAX_VALUE);
        Claim claim = claimed(
                storage().claim(new ClaimRequest(key(), PAY, newOwner(), Duration.ofDays(9_999_999), huge, false)));
        storage().renew(claim, huge);

        assertThat(storage().complete(claim, RESULT, huge)).isEqualTo(new WriteResult.Done());
        assertReplays(RESULT);
    }

    @Test
    default void durationsUnderOneMillisecondAreRefusedAndChangeNothing() {
        Claim claim = claim(LONG);
        for (Duration tooShort : List.of(Duration.ZERO, Duration.ofMillis(-1), Duration.ofNanos(999_999))) {
            assertThatThrownBy(() -> storage().complete(claim, RESULT, tooShort))
                    .hasMessageContaining("1 ms");
            assertThatThrownBy(() -> new CompletionRequest(claim, RESULT, tooShort))
                    .hasMessageContaining("1 ms");
            assertThatThrownBy(() -> storage().release(claim, tooShort)).hasMessageContaining("1 ms");
            assertThatThrownBy(() -> storage().markUnknown(claim, tooShort)).hasMessageContaining("1 ms");
            assertThatThrownBy(() -> storage().renew(claim, tooShort)).hasMessageContaining("1 ms");
        }
        assertState(State.IN_PROGRESS, 1);
    }
}
