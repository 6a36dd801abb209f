package io.idempotence.it.chaos;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.it.chaos.HistoryChecker.Kind;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/**
 * Both halves under everything at once: a network that cuts, delays, loses and repeats, providers that are killed and paused beyond
 * their lease, a storage that is killed, paused and cut off. {@code -Dchaos.seconds} says how long, {@code -Dchaos.seed} repeats a plan.
 */
class ChaosIT {
    private static final Duration TIME = Duration.ofSeconds(Integer.getInteger("chaos.seconds", 40));
    private static final long SEED = Long.getLong("chaos.seed", System.nanoTime() % 1_000_000);

    @Test
    void nothingIsDoubleLostWrongOrStuck() throws Exception {
        try (ChaosRun run = new ChaosRun(SEED, true)) {
            ChaosRun.Report report = run.run(TIME, true);

            assertThat(report.violations()).as(report.toString()).isEmpty();
            assertThat(report.count(Ending.Answered.class))
                    .as(report.toString())
                    .isGreaterThan(TIME.toSeconds());
            if (System.getProperty("chaos.seconds") != null) {
                System.out.println(report);
            }
        }
    }

    @Test
    void withoutTheFilterTheSameNetworkMakesDoubles() throws Exception {
        try (ChaosRun run = new ChaosRun(SEED, false)) {
            ChaosRun.Report report = run.run(Duration.ofSeconds(5), false);

            assertThat(report.violations())
                    .as(report.toString())
                    .extracting(HistoryChecker.Violation::kind)
                    .contains(Kind.DOUBLE);
        }
    }
}
