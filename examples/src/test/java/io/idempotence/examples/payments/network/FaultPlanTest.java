package io.idempotence.examples.payments.network;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.Test;

class FaultPlanTest {
    private static final int ORDERS = 10_000;

    @Test
    void sharesMakeOneHundred() {
        assertThat(Arrays.stream(Fault.values()).mapToInt(Fault::percent).sum()).isEqualTo(100);
    }

    @Test
    void oneSeedAlwaysSpoilsTheSameRequests() {
        assertThat(faults(7)).isEqualTo(faults(7)).isNotEqualTo(faults(8));
    }

    @Test
    void everyFaultHitsAboutItsShare() {
        Map<Fault, Integer> hits = new EnumMap<>(Fault.class);
        faults(1).forEach(fault -> hits.merge(fault, 1, Integer::sum));
        for (Fault fault : Fault.values()) {
            assertThat(hits.get(fault) / (double) ORDERS * 100)
                    .as("%s", fault)
                    .isCloseTo(fault.percent(), Offset.offset(1.0));
        }
    }

    @Test
    void slowHandlerOutlivesTwoAttempts() {
        FaultPlan plan = FaultPlan.ofSeed(1);
        for (int order = 1; order <= ORDERS; order++) {
            if (plan.fault(order, 1) == Fault.SLOW_HANDLER) {
                assertThat(plan.fault(order, 2)).isEqualTo(Fault.SLOW_HANDLER);
            }
        }
    }

    @Test
    void attemptsAtOneOrderHaveFaultsOfTheirOwn() {
        FaultPlan plan = FaultPlan.ofSeed(1);
        int bothLost = 0;
        for (int order = 1; order <= ORDERS; order++) {
            if (plan.fault(order, 1) == Fault.RESPONSE_LOST && plan.fault(order, 2) == Fault.RESPONSE_LOST) {
                bothLost++;
            }
        }
        assertThat(bothLost).isBetween(ORDERS * 4 / 1000, ORDERS * 9 / 1000);
    }

    @Test
    void networkWithoutFaultsHasNone() {
        assertThat(FaultPlan.noFaults().fault(1, 1)).isEqualTo(Fault.NONE);
    }

    private static List<Fault> faults(long seed) {
        FaultPlan plan = FaultPlan.ofSeed(seed);
        List<Fault> faults = new ArrayList<>();
        for (int order = 1; order <= ORDERS; order++) {
            faults.add(plan.fault(order, 1));
        }
        return faults;
    }
}
