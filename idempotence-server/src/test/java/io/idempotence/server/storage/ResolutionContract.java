package io.idempotence.server.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.IdempotenceId;
import io.idempotence.server.storage.IdempotenceRecord.Resolution;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import org.junit.jupiter.api.Test;

/** The contract of what an operator finds and decides: resolutions (T17) and lists. */
interface ResolutionContract extends StorageUnderTest {
    @Test
    default void anUnknownRecordReportsForHowLong() {
        storage().markUnknown(claim(LONG), RETENTION);
        passTime(SHORT);

        assertThat(storage().find(key()).orElseThrow().leaseLeft())
                .isLessThanOrEqualTo(SHORT.negated())
                .isGreaterThan(Duration.ofMinutes(-5));
    }

    @Test
    default void anUnknownThatWasAppliedIsCompletedWithoutAResult() {
        storage().markUnknown(claim(LONG), RETENTION);

        assertThat(storage().resolve(key(), 1, Resolution.APPLIED, RETENTION)).isTrue();

        assertState(State.COMPLETED, 1);
        assertReplays(ClaimResult.noResult());
    }

    @Test
    default void anUnknownThatWasNotAppliedRunsAgainWithTheNextFence() {
        storage().markUnknown(claim(LONG), RETENTION);

        assertThat(storage().resolve(key(), 1, Resolution.NOT_APPLIED, RETENTION))
                .isTrue();

        assertState(State.RELEASED, 1);
        assertThat(claim(LONG).fence()).isEqualTo(2);
    }

    @Test
    default void anAbandonedRecordIsResolvedEitherWayAndItsLateOwnerIsFenced() {
        for (Resolution resolution : Resolution.values()) {
            use(newKey());
            Claim abandoned = claim(SHORT);
            passTime(SHORT);

            assertThat(storage().resolve(key(), 1, resolution, RETENTION)).isTrue();

            assertThat(storage().complete(abandoned, RESULT, RETENTION)).isInstanceOf(WriteResult.Fenced.class);
            assertState(resolution == Resolution.APPLIED ? State.COMPLETED : State.RELEASED, 1);
        }
    }

    @Test
    default void aResolutionNeverShortensHowLongARecordLives() {
        for (Resolution resolution : Resolution.values()) {
            use(newKey());
            storage().markUnknown(claim(LONG), Duration.ofDays(29));
            assertThat(storage().resolve(key(), 1, resolution, RETENTION)).isTrue();
            assertLivesLongerThan(Duration.ofDays(28));

            use(newKey());
            storage().claim(new ClaimRequest(key(), PAY, newOwner(), SHORT, Duration.ofDays(29), false));
            passTime(SHORT);
            assertThat(storage().resolve(key(), 1, resolution, RETENTION)).isTrue();
            assertLivesLongerThan(Duration.ofDays(28));
        }
    }

    @Test
    default void aResolvedRecordLivesAtLeastAsLongAsItsRetention() {
        for (Resolution resolution : Resolution.values()) {
            use(newKey());
            storage().markUnknown(claim(LONG), RETENTION);

            assertThat(storage().resolve(key(), 1, resolution, Duration.ofDays(29)))
                    .isTrue();

            assertLivesLongerThan(Duration.ofDays(28));
        }
    }

    @Test
    default void aResolvedRecordStillDetectsAnotherRequest() {
        storage().markUnknown(claim(LONG), RETENTION);
        storage().resolve(key(), 1, Resolution.NOT_APPLIED, RETENTION);

        assertKeyReused(newOwner());
    }

    @Test
    default void onlyWhatIsUncertainIsResolved() {
        assertThat(storage().resolve(key(), 1, Resolution.APPLIED, RETENTION))
                .as("absent")
                .isFalse();
        assertThat(storage().find(key())).isEmpty();

        Claim live = claim(LONG);
        assertThat(storage().resolve(key(), 1, Resolution.NOT_APPLIED, RETENTION))
                .as("in progress")
                .isFalse();
        assertState(State.IN_PROGRESS, 1);

        storage().release(live, RETENTION);
        assertThat(storage().resolve(key(), 1, Resolution.APPLIED, RETENTION))
                .as("released")
                .isFalse();
        assertState(State.RELEASED, 1);

        storage().complete(claim(LONG), RESULT, RETENTION);
        assertThat(storage().resolve(key(), 2, Resolution.NOT_APPLIED, RETENTION))
                .as("completed")
                .isFalse();
        assertReplays(RESULT);
    }

    @Test
    default void aResolutionOfAnEarlierLookChangesNothing() {
        storage().markUnknown(claim(LONG), RETENTION);

        assertThat(storage().resolve(key(), 2, Resolution.APPLIED, RETENTION)).isFalse();
        assertState(State.UNKNOWN, 1);

        assertThat(storage().resolve(key(), 1, Resolution.NOT_APPLIED, RETENTION))
                .isTrue();
        assertThat(storage().resolve(key(), 1, Resolution.APPLIED, RETENTION)).isFalse();
        assertState(State.RELEASED, 1);
    }

    @Test
    default void aResolutionWithoutRetentionIsRefused() {
        assertThatThrownBy(() -> storage().resolve(key(), 1, Resolution.APPLIED, Duration.ZERO))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("retention");
    }

    @Test
    default void listsEveryRecordOfANamespaceAndNoOther() {
        String namespace = "list-" + UUID.randomUUID();
        int records = 903;
        Set<StorageKey> keys = new HashSet<>();
        for (int i = 0; i < records; i++) {
            use(StorageKey.of(namespace, "", "", new IdempotenceId("id-" + i)));
            keys.add(key());
            Claim claim = claim(LONG);
            if (i % 3 == 0) {
                storage().complete(claim, RESULT, RETENTION);
            } else if (i % 3 == 1) {
                storage().markUnknown(claim, RETENTION);
            }
        }
        use(StorageKey.of(namespace + ".other", "", "", new IdempotenceId("id-1")));
        claim(LONG);

        Map<StorageKey, IdempotenceRecord> listed = new HashMap<>();
        storage().list(namespace).forEach(record -> listed.put(record.key(), record));

        assertThat(listed.keySet()).isEqualTo(keys);
        assertThat(listed.values())
                .filteredOn(record -> record.state() == State.UNKNOWN)
                .hasSize(records / 3);
        IdempotenceRecord found = storage().find(keys.iterator().next()).orElseThrow();
        IdempotenceRecord shown = listed.get(found.key());
        assertThat(shown.state()).isEqualTo(found.state());
        assertThat(shown.fence()).isEqualTo(found.fence());
    }

    @Test
    default void aStreamOfRecordsMayBeLeftEarlyOftenWithoutHarm() {
        claim(LONG);
        for (int i = 0; i < 200; i++) {
            assertThat(storage().list("contract").limit(1)).hasSize(1);
        }
    }

    @Test
    default void anEmptyNamespaceListsNothingAndAWrongNameIsRefused() {
        assertThat(storage().list("nobody-" + UUID.randomUUID())).isEmpty();
        assertThatThrownBy(() -> storage().list("pay*")).isInstanceOf(IllegalArgumentException.class);
    }

    private void assertLivesLongerThan(Duration duration) {
        assertThat(storage().find(key()).orElseThrow().retentionLeft()).isGreaterThan(duration);
    }
}
