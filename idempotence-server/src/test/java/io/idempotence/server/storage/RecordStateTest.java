package io.idempotence.server.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

class RecordStateTest {
    @Test
    void everyStateIsFoundByItsLabel() {
        for (RecordState state : RecordState.values()) {
            assertThat(RecordState.named(state.label())).containsExactly(state);
        }
        assertThat(RecordState.named(" In-Progress ")).containsExactly(RecordState.IN_PROGRESS);
        assertThat(RecordState.named("all")).containsExactly(RecordState.values());
    }

    @Test
    void anUnknownStateIsNamedBesideTheKnownOnes() {
        assertThatThrownBy(() -> RecordState.named("finished"))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage(
                        "state must be in-progress, completed, released, unknown, abandoned or all, got 'finished'");
    }
}
