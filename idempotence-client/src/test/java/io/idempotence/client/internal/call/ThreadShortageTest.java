package io.idempotence.client.internal.call;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.github.resilience4j.retry.Retry;
import io.idempotence.client.internal.http.CallThreads;
import io.idempotence.client.internal.http.Observation;
import java.io.IOException;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** Asynchronous calls in a process that can start no more threads. */
class ThreadShortageTest {
    private final AtomicInteger sent = new AtomicInteger();
    private boolean begins;
    private CompletableFuture<Object> response = new CompletableFuture<>();

    @Test
    void requestThatNoThreadWouldEndIsUnknown() {
        assertThatThrownBy(() -> get(call(Duration.ofMinutes(1), "idempotence-timer", Runnable::run)))
                .cause()
                .isInstanceOf(UnknownException.class)
                .hasRootCauseInstanceOf(OutOfMemoryError.class);
        assertThat(response).isCancelled();
    }

    /** Its body is not read yet. It looked like a final failure. */
    @Test
    void requestThatNoThreadWouldEndIsUnknownAlthoughItsResponseBegan() {
        begins = true;
        assertThatThrownBy(() -> get(call(Duration.ofMinutes(1), "idempotence-timer", Runnable::run)))
                .cause()
                .isInstanceOf(UnknownException.class);
    }

    @Test
    void requestWithoutAResponseIsUnknownAfterTheDeadline() {
        assertThatThrownBy(() -> get(call(Duration.ofMillis(50), "idempotence-background", Runnable::run)))
                .cause()
                .isInstanceOf(UnknownException.class)
                .hasCauseInstanceOf(SocketTimeoutException.class);
    }

    @Test
    void requestIsUnknownIfNothingTakesItsRetry() {
        response = CompletableFuture.failedFuture(new IOException("cut"));
        assertThatThrownBy(() -> get(call(Duration.ofMinutes(1), "idempotence-background", task -> {
                    throw new RejectedExecutionException("shut down");
                })))
                .cause()
                .isInstanceOf(UnknownException.class);
        assertThat(sent).hasValue(1);
    }

    private static @Nullable Object get(CompletableFuture<@Nullable Object> call) throws Exception {
        return call.get(60, TimeUnit.SECONDS);
    }

    private CompletableFuture<@Nullable Object> call(Duration deadline, String missing, Executor executor) {
        return CallLoop.runAsync(
                TestCalls.withId(deadline),
                Retry.ofDefaults("orders"),
                new Client(),
                executor,
                new CallThreads(name -> task -> {
                    if (name.equals(missing)) {
                        throw new OutOfMemoryError("unable to create native thread");
                    }
                    Thread thread = new Thread(task, name);
                    thread.setDaemon(true);
                    return thread;
                }));
    }

    private static final class UnknownException extends RuntimeException {
        UnknownException(Throwable cause) {
            super(cause);
        }
    }

    private final class Client extends ClientWithoutResponses {
        @Override
        public Object send(int attempt, Observation seen) {
            sent.incrementAndGet();
            seen.started();
            if (begins) {
                seen.responded(200, Map.of());
            }
            return response;
        }

        @Override
        public Throwable unknown(Observation seen, Throwable cause) {
            return new UnknownException(cause);
        }
    }
}
