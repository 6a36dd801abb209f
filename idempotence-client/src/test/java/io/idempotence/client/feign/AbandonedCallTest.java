package io.idempotence.client.feign;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import feign.InvocationHandlerFactory;
import feign.InvocationHandlerFactory.MethodHandler;
import io.idempotence.client.IdempotenceClientConfig;
import java.util.concurrent.Callable;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Calls that a layer above them, such as a time limiter, ends while they wait in the queue of a thread pool. */
class AbandonedCallTest extends FeignTestBase {
    /** The run of the call that the layer has queued. */
    private final CompletableFuture<Callable<Object>> queued = new CompletableFuture<>();

    private Orders queueing(IdempotenceClientConfig config, Callable<Object> layer) {
        InvocationHandlerFactory handlers = (target, dispatch) -> (proxy, method, args) -> {
            MethodHandler handler = dispatch.get(method);
            queued.complete(() -> run(handler, args));
            return layer.call();
        };
        return orders(config, b -> b.invocationHandlerFactory(handlers));
    }

    private static Object run(MethodHandler handler, Object[] args) throws Exception {
        try {
            return handler.invoke(args);
        } catch (Exception | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }

    static Stream<Exception> endsOfALayer() {
        return Stream.of(
                new TimeoutException("the limit is over"),
                new InterruptedException("the caller was interrupted"),
                new CancellationException("the caller cancelled"),
                new IllegalStateException("of a layer of its own"));
    }

    /** The exception means that nothing was sent. */
    @ParameterizedTest
    @MethodSource("endsOfALayer")
    void queuedCallIsNeverSentAfterTheExceptionOfALayer(Exception end) throws Exception {
        Orders orders = queueing(fast().build(), () -> {
            throw end;
        });
        assertThat(catchThrowable(() -> orders.create("tea")))
                .satisfiesAnyOf(
                        thrown -> assertThat(thrown).isSameAs(end),
                        thrown -> assertThat(thrown).hasCause(end));
        Callable<Object> late = queued.join();
        assertThatThrownBy(late::call).isInstanceOf(CancellationException.class);
        assertThat(server.requests()).isEmpty();
    }

    @Test
    void queuedCallIsNeverSentAfterTheFallbackOfALayer() throws Exception {
        assertThat(queueing(fast().build(), () -> "fallback").create("tea")).isEqualTo("fallback");
        Callable<Object> late = queued.join();
        assertThatThrownBy(late::call).isInstanceOf(CancellationException.class);
        assertThat(server.requests()).isEmpty();
    }

    private void assertSentAfterTheLimit(IdempotenceClientConfig config, Function<Orders, String> call)
            throws Exception {
        Orders orders = queueing(config, () -> {
            throw new TimeoutException("the limit is over");
        });
        assertThat(catchThrowable(() -> call.apply(orders))).hasCauseInstanceOf(TimeoutException.class);
        assertThat(queued.join().call()).isEqualTo("ok");
        assertThat(server.requests()).hasSize(1);
    }

    /** A call without an ID behaves as without this library. */
    @Test
    void queuedGetIsSentAfterATimeLimiterGaveItUp() throws Exception {
        assertSentAfterTheLimit(fast().build(), Orders::list);
    }

    @Test
    void queuedCallOfADisabledClientIsSentAfterATimeLimiterGaveItUp() throws Exception {
        assertSentAfterTheLimit(fast().enabled(false).build(), orders -> orders.create("tea"));
    }

    /** Two runs of a call, as of a hedging layer, looked like one run with two requests. */
    @Test
    void bothOfTwoQueuedRunsAreNeverSent() throws Exception {
        Orders orders = queueing(fast().build(), () -> {
            throw new TimeoutException("the limit is over");
        });
        assertThat(catchThrowable(() -> orders.create("tea"))).hasCauseInstanceOf(TimeoutException.class);
        Callable<Object> late = queued.join();
        assertThatThrownBy(late::call).isInstanceOf(CancellationException.class);
        assertThatThrownBy(late::call).isInstanceOf(CancellationException.class);
        assertThat(server.requests()).isEmpty();
    }
}
