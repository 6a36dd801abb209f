package io.idempotence.it.chaos;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.it.chaos.ChaosPlan.Scene;
import java.time.Duration;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Both halves under everything at once: a network that cuts, delays, loses and repeats, providers that are killed and paused beyond
 * their lease, a storage that is killed, paused and cut off. {@code -Dchaos.seconds} says how long, {@code -Dchaos.seed} repeats a plan.
 */
@Tag("all")
class ChaosIT {
    private static final Duration TIME = Duration.ofSeconds(Integer.getInteger("chaos.seconds", 40));
    static final long SEED = Long.getLong("chaos.seed", System.nanoTime() % 1_000_000);

    @Test
    void noCallIsDuplicatedLostWrongOrStuck() throws Exception {
        assertThatAllIsWell(Scene.EVERYTHING, TIME);
    }

    static ChaosRun.Report assertThatAllIsWell(Scene scene, Duration time) throws Exception {
        try (ChaosRun run = new ChaosRun(SEED, scene)) {
            ChaosRun.Report report = run.run(time);

            assertThat(report.violations()).as(report.toString()).isEmpty();
            assertThat(report.count(Ending.Responded.class))
                    .as(report.toString())
                    .isGreaterThan(time.toSeconds());
            assertThat(report.clientsWithAResponse())
                    .as(report.toString())
                    .containsExactlyInAnyOrder("feign-default", "feign-okhttp", "feign-hc5", "feign-java11", "okhttp");
            if (System.getProperty("chaos.seconds") != null) {
                System.out.println(report);
            }
            return report;
        }
    }
}
