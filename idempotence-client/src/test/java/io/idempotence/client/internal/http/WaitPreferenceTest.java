package io.idempotence.client.internal.http;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class WaitPreferenceTest {
    /** The wish in whole seconds, rounded up; half a second below the read timeout, rounded down. */
    @ParameterizedTest
    @CsvSource({
        "5000, 60000, wait=5",
        "4001, 60000, wait=5",
        "1, 60000, wait=1",
        "5000, 5500, wait=5",
        "5000, 5499, wait=4",
        "5000, 1500, wait=1",
        "5000, 1499,",
        "5000, 1,",
        "0, 60000,"
    })
    void serverHoldsForAsLongAsWishedAndNoLongerThanThisSideListens(long wished, long readTimeout, String preference) {
        assertThat(WaitPreference.of(Duration.ofMillis(wished), readTimeout, List.of()))
                .isEqualTo(Optional.ofNullable(preference));
    }

    @ParameterizedTest
    @ValueSource(strings = {"wait=1", "WAIT = 1", "respond-async, wait=10", "respond-async;wait=10"})
    void waitThatTheCallerChoseStays(String own) {
        assertThat(WaitPreference.of(Duration.ofSeconds(5), 60_000, List.of("return=minimal", own)))
                .isEmpty();
    }

    @Test
    void otherPreferencesChooseNoWait() {
        assertThat(WaitPreference.of(Duration.ofSeconds(5), 60_000, List.of("return=minimal", "await=1")))
                .contains("wait=5");
    }
}
