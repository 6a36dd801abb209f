package io.idempotence.client.feign;

import static io.idempotence.client.IdempotenceClientEvent.Result.UNKNOWN;
import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.client.feign.AsyncCalls.Wire;
import java.io.IOException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** A call that its caller cancels while a further attempt is being made. */
class CancelledAttemptTest extends FeignTestBase {
    @RegisterExtension
    private final AsyncCalls async = new AsyncCalls(this);

    private final CountDownLatch intercepts = new CountDownLatch(1);
    private final CountDownLatch cancelled = new CountDownLatch(1);

    /** There is no request to cancel yet. */
    @Test
    void cancellingInAnInterceptorOfAFurtherAttemptSendsNothingMore() throws Exception {
        Wire wire = new Wire();
        AtomicInteger requests = new AtomicInteger();
        ExecutorService furtherAttempts = Executors.newSingleThreadExecutor();
        try {
            AsyncOrders orders = async.orders(
                    fast().executor(furtherAttempts).build(),
                    builder -> builder.client(wire).requestInterceptor(template -> {
                        if (requests.incrementAndGet() > 1) {
                            intercepts.countDown();
                            await(cancelled);
                        }
                    }));
            CompletableFuture<String> response = orders.create("x");
            wire.fail(0, new IOException("connection reset"));
            await(intercepts);
            response.cancel(true);
            cancelled.countDown();
        } finally {
            furtherAttempts.shutdown();
        }
        assertThat(furtherAttempts.awaitTermination(30, TimeUnit.SECONDS)).isTrue();
        assertThat(wire.requests).hasSize(1);
        assertEnd(UNKNOWN, 2, 1);
    }

    private static void await(CountDownLatch latch) {
        try {
            assertThat(latch.await(60, TimeUnit.SECONDS)).isTrue();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
