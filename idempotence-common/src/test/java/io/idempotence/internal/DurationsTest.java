package io.idempotence.internal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.time.Duration;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class DurationsTest {
    @ParameterizedTest
    @CsvSource({
        "500ms, PT0.5S",
        "30s, PT30S",
        "5 m, PT5M",
        "2h, PT2H",
        "1d, P1D",
        "0s, PT0S",
        "999999999d, PT23999999976H",
        "PT1M30S, PT1M30S",
    })
    void aNumberWithAUnitOrIso8601IsRead(String text, Duration duration) {
        assertThat(Durations.parse(text)).isEqualTo(duration);
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "5", "ms", "5 weeks", "1.5s", "-5s", "1000000000s", "5s 3ms", "1d2h", "５s"})
    void anythingElseIsRefusedWithExamples(String text) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Durations.parse(text))
                .withMessageContaining("'" + text + "'")
                .withMessageContaining("500ms, 30s, 5m, 2h or 1d");
    }

    @ParameterizedTest
    @CsvSource({
        "P3DT4H5M, 3d 4h",
        "P3DT5M, 3d",
        "PT12M5S, 12m 5s",
        "PT25H, 1d 1h",
        "PT2H, 2h",
        "PT59.9S, 59s",
        "PT0.08S, 80ms",
        "PT0S, 0s",
        "PT-5S, 0s",
    })
    void theTwoLargestUnitsAreShown(Duration duration, String shown) {
        assertThat(Durations.shown(duration)).isEqualTo(shown);
    }
}
