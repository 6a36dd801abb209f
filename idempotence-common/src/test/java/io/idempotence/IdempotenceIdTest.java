package io.idempotence;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import org.junit.jupiter.api.Test;

class IdempotenceIdTest {
    @Test
    void holdsOneTo255PrintableCharacters() {
        assertThat(IdempotenceId.of("a")).isEqualTo(new IdempotenceId("a")).hasToString("a");
        assertThat(IdempotenceId.of("~".repeat(255)).value()).hasSize(255);
    }

    @Test
    void refusesWhatIsNoIdAndNeverShowsIt() {
        assertThatThrownBy(() -> IdempotenceId.of("")).hasMessageContaining("has 0");
        assertThatThrownBy(() -> IdempotenceId.of("k".repeat(256))).hasMessageContaining("has 256");
        assertThatThrownBy(() -> IdempotenceId.of("secret\r\nX: y"))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("character 7")
                .hasMessageContaining("0x0D")
                .hasMessageNotContaining("secret");
        assertThatThrownBy(() -> IdempotenceId.of("ü")).hasMessageContaining("0xFC");
    }

    /** Jobs that carry one are serialized, for example by a queue. That is no promise for the exceptions of the HTTP clients. */
    @Test
    void canBeSerialized() throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        new ObjectOutputStream(bytes).writeObject(IdempotenceId.of("job-1"));
        assertThat(new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray())).readObject())
                .isEqualTo(IdempotenceId.of("job-1"));
    }
}
