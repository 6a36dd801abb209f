package io.idempotence.server.storage;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.server.storage.IdempotenceRecord.State;
import org.junit.jupiter.api.Test;

/** The contract of what an operator deletes: the record that was read, and no other. */
interface DeletionContract extends StorageUnderTest {
    private IdempotenceRecord seen() {
        return storage().find(key()).orElseThrow();
    }

    @Test
    default void aRecordThatIsClaimedAgainAfterALookIsNotDeleted() {
        storage().release(claim(LONG), RETENTION);
        IdempotenceRecord seen = seen();
        Claim running = claim(LONG);

        assertThat(storage().deleteUnchanged(key(), seen)).isFalse();

        assertState(State.IN_PROGRESS, 2);
        assertThat(storage().complete(running, RESULT, RETENTION)).isEqualTo(new WriteResult.Done());
    }

    /** The fence begins again at 1, so it does not tell the two claims apart. */
    @Test
    default void anIdThatIsDeletedAndClaimedAgainAfterALookIsNotDeleted() {
        claim(LONG);
        IdempotenceRecord seen = seen();
        storage().delete(key());
        claim(LONG);

        assertThat(storage().deleteUnchanged(key(), seen)).isFalse();

        assertState(State.IN_PROGRESS, 1);
    }

    @Test
    default void aRecordThatHasEndedAfterALookIsNotDeleted() {
        Claim claim = claim(SHORT);
        passTime(SHORT);
        IdempotenceRecord abandoned = seen();
        storage().complete(claim, RESULT, RETENTION);

        assertThat(storage().deleteUnchanged(key(), abandoned)).isFalse();

        assertReplays(RESULT);
    }

    @Test
    default void aRecordThatIsRenewedAfterItWasSeenAbandonedIsNotDeleted() {
        Claim claim = claim(SHORT);
        passTime(SHORT);
        IdempotenceRecord abandoned = seen();
        storage().renew(claim, LONG);

        assertThat(storage().deleteUnchanged(key(), abandoned)).isFalse();

        assertState(State.IN_PROGRESS, 1);
    }

    @Test
    default void aRecordIsDeletedInTheStateInWhichItWasSeen() {
        for (State state : State.values()) {
            use(newKey());
            bringTo(state);
            assertState(state, 1);
            IdempotenceRecord seen = seen();

            assertThat(storage().deleteUnchanged(key(), seen)).as("%s", state).isTrue();

            assertThat(storage().find(key())).isEmpty();
            assertThat(storage().deleteUnchanged(key(), seen)).as("again").isFalse();
            assertThat(claim(LONG).fence()).isEqualTo(1);
        }
    }

    private void bringTo(State state) {
        Claim claim = claim(state == State.ABANDONED ? SHORT : LONG);
        switch (state) {
            case IN_PROGRESS -> storage().renew(claim, LONG);
            case COMPLETED -> storage().completeProvisionally(claim, RESULT, RETENTION);
            case RELEASED -> storage().release(claim, RETENTION);
            case UNKNOWN -> storage().markUnknown(claim, RETENTION);
            case ABANDONED -> passTime(SHORT);
        }
    }

    @Test
    default void aRenewalDoesNotKeepARunningRecordFromBeingDeleted() {
        Claim claim = claim(LONG);
        IdempotenceRecord seen = seen();
        storage().renew(claim, LONG.multipliedBy(2));

        assertThat(storage().deleteUnchanged(key(), seen)).isTrue();
    }

    @Test
    default void aRecordThatCanBeReadIsNotDeletedAsAnUnreadableOne() {
        assertThat(storage().deleteUnchanged(key(), null)).as("absent").isFalse();
        assertThat(storage().find(key())).isEmpty();
        claim(LONG);

        assertThat(storage().deleteUnchanged(key(), null)).isFalse();

        assertState(State.IN_PROGRESS, 1);
    }
}
