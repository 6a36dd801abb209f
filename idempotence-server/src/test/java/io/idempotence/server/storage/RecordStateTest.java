package io.idempotence.server.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.server.storage.IdempotenceRecord.State;
import org.junit.jupiter.api.Test;

class RecordStateTest {
    @Test
    void everyStateIsFoundByItsLabel() {
        for (State state : State.values()) {
            assertThat(State.named(state.label())).containsExactly(state);
        }
        assertThat(State.named(" In-Progress ")).containsExactly(State.IN_PROGRESS);
        assertThat(State.named("all")).containsExactly(State.values());
    }

    @Test
    void anUnknownStateIsNamedBesideTheKnownOnes() {
        assertThatThrownBy(() -> State.named("finished"))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage(
                        "state must be in-progress, completed, released, unknown, abandoned or all, got 'finished'");
    }
}
