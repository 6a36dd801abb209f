package io.idempotence.client.retry;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Instant;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;

class RetryAfterTest {
    private static final Instant NOW = Instant.parse("2026-11-21T10:00:00Z");

    private static OptionalLong read(String... headers) {
        Map<String, Collection<String>> map = new HashMap<>();
        for (int i = 0; i < headers.length; i += 2) {
            map.put(headers[i], List.of(headers[i + 1]));
        }
        Observation seen = new Observation();
        seen.answered(503, map);
        return RetryAfter.millis(seen, NOW);
    }

    @Test
    void secondsMillisecondsAndDates() {
        assertThat(read("retry-after", "2")).hasValue(2000);
        assertThat(read("Retry-After", " 0 ")).hasValue(0);
        assertThat(read("Retry-After-Ms", "20")).hasValue(20);
        assertThat(read("Retry-After", "Sat, 21 Nov 2026 10:00:07 GMT")).hasValue(7000);
        assertThat(read("Retry-After", "Sat, 21 Nov 2026 09:00:00 GMT")).hasValue(0);
    }

    @Test
    void millisecondsWin() {
        assertThat(read("Retry-After", "1", "Retry-After-Ms", "20")).hasValue(20);
        assertThat(read("Retry-After", "1", "Retry-After-Ms", "soon")).hasValue(1000);
    }

    @Test
    void nonsenseIsIgnored() {
        assertThat(read()).isEmpty();
        assertThat(read("Retry-After", "")).isEmpty();
        assertThat(read("Retry-After", "-5")).isEmpty();
        assertThat(read("Retry-After", "1.5")).isEmpty();
        assertThat(read("Retry-After", "tomorrow")).isEmpty();
        assertThat(read("Retry-After", "١")).isEmpty();
    }

    @Test
    void absurdNumbersAreLongerThanAnyDeadlineAndDoNotOverflow() {
        assertThat(read("Retry-After", "9".repeat(40)).getAsLong()).isGreaterThan(1L << 60);
        assertThat(read("Retry-After", "9".repeat(15)).getAsLong()).isPositive();
    }
}
