package io.idempotence.client.internal.http;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.LongSummaryStatistics;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Random;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

class RetryAfterTest {
    private static final Instant NOW = Instant.parse("2026-11-21T10:00:00Z");

    private static OptionalLong read(String... headers) {
        Map<String, Collection<String>> map = new HashMap<>();
        for (int i = 0; i < headers.length; i += 2) {
            map.put(headers[i], List.of(headers[i + 1]));
        }
        Observation seen = new Observation();
        seen.responded(503, map);
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

    private static LongStream waits(String asked, long leastSpread, Duration deadline) {
        Observation seen = new Observation();
        seen.responded(503, Map.of("Retry-After-Ms", List.of(asked)));
        Random random = new Random(41);
        return LongStream.generate(
                        () -> RetryAfter.jittered(seen, NOW, leastSpread, Deadline.in(deadline), random.nextDouble()))
                .limit(10_000);
    }

    @Test
    void crowdIsSpreadButNobodyComesTooEarlyOrMuchTooLate() {
        LongSummaryStatistics second = waits("1000", 250, Duration.ofMinutes(1)).summaryStatistics();
        assertThat(second.getMin()).isBetween(1000L, 1002L);
        assertThat(second.getMax()).isBetween(1248L, 1250L);
        LongSummaryStatistics minute = waits("60000", 250, Duration.ofHours(1)).summaryStatistics();
        assertThat(minute.getMin()).isBetween(60_000L, 60_100L);
        assertThat(minute.getMax()).isBetween(71_900L, 72_000L);
        // Tenths of it: no two of them hold much more than a tenth of the crowd.
        long busiest = waits("1000", 250, Duration.ofMinutes(1))
                .mapToObj(wait -> (wait - 1000) / 25)
                .collect(Collectors.groupingBy(tenth -> tenth, Collectors.counting()))
                .values()
                .stream()
                .max(Long::compare)
                .orElseThrow();
        assertThat(busiest).isLessThan(1200);
    }

    @Test
    void spreadTakesNoAttemptAwayThatTheDeadlineAllows() {
        assertThat(waits("1000", 250, Duration.ofMillis(1100))).allMatch(wait -> wait >= 1000 && wait <= 1090);
        assertThat(waits("1000", 250, Duration.ofMillis(500))).allMatch(wait -> wait == 1000);
    }

    @Test
    void nothingToWaitForIsNotSpread() {
        assertThat(waits("0", 250, Duration.ofMinutes(1))).allMatch(wait -> wait == 0);
        assertThat(waits("soon", 250, Duration.ofMinutes(1))).allMatch(wait -> wait == 0);
    }
}
