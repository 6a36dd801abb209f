package io.idempotence.client.internal.call;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.client.IdempotenceClientEvent.Result;
import io.idempotence.client.internal.http.Observation;
import io.idempotence.client.internal.scope.ScopeHistory.HandlerFailure;
import java.time.Duration;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Calls whose attempts are run by layers above them in several threads at once. */
class LogicalCallTest {
    @SuppressWarnings("ThreadPriorityCheck") // the other thread may need this processor
    private static boolean isSentTogether(LogicalCall call, AtomicInteger ready) {
        ready.incrementAndGet();
        while (ready.get() < 2) {
            Thread.yield();
        }
        try {
            call.countRequest();
            return true;
        } catch (CancellationException e) {
            return false;
        }
    }

    /** The hash of a great body costs time. Every call took it. */
    @ParameterizedTest
    @CsvSource({"SUCCEEDED, 0", "REPLAYED, 0", "REFUSED, 0", "FAILED, 0", "UNKNOWN, 1"})
    void bodyIsHashedOnlyIfTheOutcomeIsUnknown(Result result, int hashes) {
        LogicalCall call = TestCalls.withId(Duration.ofMinutes(1));
        AtomicInteger hashed = new AtomicInteger();
        call.describe(() -> "/orders", hashed::incrementAndGet);
        call.enter();
        call.countRequest();
        call.ended(result, null);
        call.exit();
        assertThat(hashed).hasValue(hashes);
    }

    /** The exception of a failure is that of all calls of a scope that reach nobody afterwards, perhaps for hours. */
    @Test
    void failureOfTheHandlerKeepsOnlySomeLaterExceptions() {
        LogicalCall call = TestCalls.withId(Duration.ofMinutes(1));
        Exception failure = new Exception("500");
        call.failed(new HandlerFailure(new Observation(), failure));
        for (int i = 0; i < 100; i++) {
            assertThat(call.orHandlerFailure(new Exception("refused"))).isSameAs(failure);
        }
        assertThat(call.orHandlerFailure(failure)).isSameAs(failure);
        assertThat(failure.getSuppressed()).hasSize(8);
    }

    /** The second of two requests at the same time took itself for one that follows a sent one. */
    @Test
    void noneOfTwoConcurrentRunsOfACallThatWasGivenUpIsSent() throws Exception {
        ExecutorService other = Executors.newSingleThreadExecutor();
        try {
            for (int i = 0; i < 10_000; i++) {
                LogicalCall call = TestCalls.withId(Duration.ofMinutes(1));
                call.giveUp();
                AtomicInteger ready = new AtomicInteger();
                Future<Boolean> second = other.submit(() -> isSentTogether(call, ready));
                assertThat(isSentTogether(call, ready)).isFalse();
                assertThat(second.get()).isFalse();
            }
        } finally {
            other.shutdownNow();
        }
    }
}
