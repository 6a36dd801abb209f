package io.idempotence.client;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;

class RetryBudgetTest {
    @Test
    void spendsUntilTooFewAreLeft() {
        RetryBudget budget = new RetryBudget(12, 5, 1);
        assertThat(budget.trySpend()).isTrue();
        assertThat(budget.trySpend()).isTrue();
        assertThat(budget.trySpend()).isFalse();
        assertThat(budget.available()).isEqualTo(2);
    }

    @Test
    void refundNeverGoesBeyondTheCapacity() {
        RetryBudget budget = new RetryBudget(10, 5, 7);
        budget.trySpend();
        budget.refund();
        budget.refund();
        assertThat(budget.available()).isEqualTo(10);
    }

    @Test
    void retriesThatCostNothingHaveNoLimit() {
        RetryBudget budget = new RetryBudget(1, 0, 0);
        for (int i = 0; i < 100; i++) {
            assertThat(budget.trySpend()).isTrue();
        }
        assertThat(budget.available()).isEqualTo(1);
    }

    /** A client of everybody's hosts does not fill the memory with their names. */
    @Test
    void targetsBeyondManyShareOneBudgetUnlessTheyHaveSettings() {
        IdempotenceClientConfig config = IdempotenceClientConfig.builder()
                .client("orders", own -> own.budget(7, 5, 1))
                .build();
        RetryBudget first = config.budget("host-0");
        Set<RetryBudget> budgets = Collections.newSetFromMap(new IdentityHashMap<>());
        for (int i = 0; i < 5_000; i++) {
            budgets.add(config.budget("host-" + i));
        }
        assertThat(budgets).hasSize(1_001);
        assertThat(config.budget("host-0")).isSameAs(first);
        assertThat(config.budget("orders").available()).isEqualTo(7);
    }

    @Test
    void noCapacityMeansNoRetries() {
        assertThat(new RetryBudget(0, 0, 1).trySpend()).isFalse();
    }

    @Test
    void concurrentSpendersNeverSpendMoreThanThereIs() throws Exception {
        RetryBudget budget = new RetryBudget(500, 5, 0);
        ExecutorService threads = Executors.newFixedThreadPool(8);
        try {
            List<Callable<Boolean>> spenders = new ArrayList<>();
            for (int i = 0; i < 400; i++) {
                spenders.add(budget::trySpend);
            }
            int paid = 0;
            for (Future<Boolean> spender : threads.invokeAll(spenders)) {
                if (spender.get()) {
                    paid++;
                }
            }
            assertThat(paid).isEqualTo(100);
            assertThat(budget.available()).isZero();
        } finally {
            threads.shutdownNow();
        }
    }
}
