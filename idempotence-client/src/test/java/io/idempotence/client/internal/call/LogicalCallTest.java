package io.idempotence.client.internal.call;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.internal.scope.ScopeHistory;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.slf4j.LoggerFactory;

/** A call that layers around its attempts run in several threads. */
class LogicalCallTest {
    private static LogicalCall call() {
        ClientOperation operation = new ClientOperation(
                "orders",
                "create",
                "create",
                IdempotenceClientConfig.builder().build(),
                null,
                LoggerFactory.getLogger(LogicalCallTest.class));
        CallIdentity identity = new CallIdentity(operation, operation::method, null, null, ScopeHistory.ofOneCall());
        identity.decide("POST", List.of("\"order-1\""), () -> {
            throw new AssertionError("the caller gives an ID");
        });
        return new LogicalCall(operation, identity, Duration.ofMinutes(1));
    }

    private static boolean isSentTogether(LogicalCall call, AtomicInteger ready) {
        ready.incrementAndGet();
        while (ready.get() < 2) {
            Thread.onSpinWait();
        }
        try {
            call.countRequest();
            return true;
        } catch (CancellationException e) {
            return false;
        }
    }

    /** The second of two requests at the same time took itself for one that follows a sent one. */
    @Test
    void noneOfTwoConcurrentRunsOfACallThatWasGivenUpIsSent() throws Exception {
        ExecutorService other = Executors.newSingleThreadExecutor();
        try {
            for (int i = 0; i < 50_000; i++) {
                LogicalCall call = call();
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
