package io.idempotence.examples.payments;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;

class ProgressTest {
    @Test
    void logGetsFiveLinesWhateverTheSize() {
        assertThat(shown(60).lines())
                .containsExactly(
                        "task: 12 of 60", "task: 24 of 60", "task: 36 of 60", "task: 48 of 60", "task: 60 of 60");
        assertThat(shown(100_000).lines()).hasSize(5).endsWith("task: 100000 of 100000");
    }

    @Test
    void logGetsALineForEachOfFewer() {
        assertThat(shown(2).lines()).containsExactly("task: 1 of 2", "task: 2 of 2");
    }

    /** A test has no terminal, on any JDK: a console that is none must not get a bar. */
    private static String shown(int max) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (Progress progress = Progress.show("task", max, new PrintStream(out, true, StandardCharsets.UTF_8))) {
            for (int i = 0; i < max; i++) {
                progress.step();
            }
        }
        return out.toString(StandardCharsets.UTF_8);
    }
}
