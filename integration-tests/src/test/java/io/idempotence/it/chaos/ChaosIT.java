package io.idempotence.it.chaos;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.it.chaos.ChaosPlan.Scene;
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

    private static final Duration CALM_TIME = Duration.ofSeconds(8);

    @Test
    void nothingIsDoubleLostWrongOrStuck() throws Exception {
        assertThatAllIsWell(Scene.EVERYTHING, TIME);
    }

    @Test
    void faultsOfTheNetworkAloneLeaveNothingUnknown() throws Exception {
        ChaosRun.Report report = assertThatAllIsWell(Scene.NETWORK_FAULTS_ONLY, CALM_TIME);

        assertThat(report.count(Ending.Unknown.class)).as(report.toString()).isZero();
    }

    private static ChaosRun.Report assertThatAllIsWell(Scene scene, Duration time) throws Exception {
        try (ChaosRun run = new ChaosRun(SEED, scene)) {
            ChaosRun.Report report = run.run(time);

            assertThat(report.violations()).as(report.toString()).isEmpty();
            assertThat(report.count(Ending.Answered.class))
                    .as(report.toString())
                    .isGreaterThan(time.toSeconds());
            assertThat(report.clientsAnswered())
                    .as(report.toString())
                    .containsExactlyInAnyOrder("feign-default", "feign-okhttp", "feign-hc5", "feign-java11", "okhttp");
            if (System.getProperty("chaos.seconds") != null) {
                System.out.println(report);
            }
            return report;
        }
    }

    @Test
    void withoutTheFilterTheSameNetworkMakesDoubles() throws Exception {
        try (ChaosRun run = new ChaosRun(SEED, Scene.NETWORK_FAULTS_WITHOUT_PROTECTION)) {
            ChaosRun.Report report = run.run(Duration.ofSeconds(5));

            assertThat(report.violations())
                    .as(report.toString())
                    .extracting(HistoryChecker.Violation::kind)
                    .contains(Kind.DOUBLE);
        }
    }
}
