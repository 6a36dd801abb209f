package io.idempotence.it.chaos;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.it.chaos.ChaosPlan.Scene;
import io.idempotence.it.chaos.HistoryChecker.Kind;
import java.time.Duration;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The network of {@link ChaosIT} on its own. */
@Tag("all")
class ChaosOfTheNetworkIT {
    private static final Duration TIME = Duration.ofSeconds(8);

    @Test
    void faultsOfTheNetworkAloneLeaveNothingUnknown() throws Exception {
        ChaosRun.Report report = ChaosIT.assertThatAllIsWell(Scene.NETWORK_FAULTS_ONLY, TIME);

        assertThat(report.count(Ending.Unknown.class)).as(report.toString()).isZero();
    }

    @Test
    void withoutTheFilterTheSameNetworkMakesDoubles() throws Exception {
        try (ChaosRun run = new ChaosRun(ChaosIT.SEED, Scene.NETWORK_FAULTS_WITHOUT_PROTECTION)) {
            ChaosRun.Report report = run.run(Duration.ofSeconds(5));

            assertThat(report.violations())
                    .as(report.toString())
                    .extracting(HistoryChecker.Violation::kind)
                    .contains(Kind.DOUBLE);
        }
    }
}
