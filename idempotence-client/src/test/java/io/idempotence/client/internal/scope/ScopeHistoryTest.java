package io.idempotence.client.internal.scope;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.IdempotenceId;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;

/** The doubt that the calls of one ID have about each other. */
class ScopeHistoryTest {
    private static ScopeHistory.Call begin(ScopeHistory history) {
        return history.begin(firstSentAt -> {}, null, () -> IdempotenceId.of("order-1"));
    }

    /** While a call ended, the next one found it neither among those that are in flight nor among those that have ended. */
    @Test
    void callThatEndsInDoubtLeavesNoInstantWithoutDoubt() throws Exception {
        ExecutorService other = Executors.newSingleThreadExecutor();
        try {
            for (int i = 0; i < 20_000; i++) {
                ScopeHistory history = ScopeHistory.ofOneCall();
                ScopeHistory.Call first = begin(history);
                first.sent();
                Future<?> end = other.submit(() -> first.ended(true));
                while (!end.isDone()) {
                    assertThat(history.isInDoubt()).isTrue();
                }
                end.get();
                assertThat(history.isInDoubt()).isTrue();
            }
        } finally {
            other.shutdownNow();
        }
    }
}
