package io.idempotence.client.feign;

import static io.idempotence.client.IdempotenceClientEvent.Result.FAILED;
import static io.idempotence.client.IdempotenceClientEvent.Result.UNKNOWN;
import static io.idempotence.client.feign.AsyncCalls.failure;
import static io.idempotence.client.feign.AsyncCalls.get;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import feign.AsyncClient;
import feign.AsyncFeign;
import feign.Client;
import feign.ExceptionPropagationPolicy;
import feign.FeignException;
import feign.Request;
import feign.RequestLine;
import feign.Response;
import feign.Target.HardCodedTarget;
import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceClientEvent;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.feign.AsyncCalls.Wire;
import io.idempotence.client.feign.TestServer.Reply;
import io.idempotence.client.internal.scope.CallScope;
import java.io.IOException;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Tests of how calls end that return a future: cancelled, given up by their caller, or past their deadline. */
class AsyncCallOutcomeTest extends FeignTestBase {
    private final CountDownLatch ended = new CountDownLatch(1);

    @RegisterExtension
    private final AsyncCalls async = new AsyncCalls(this);

    @Test
    void cancellingStopsTheRetriesAndTheRequestInFlight() throws Exception {
        CountDownLatch out = new CountDownLatch(1);
        CompletableFuture<Response> wire = new CompletableFuture<>();
        AtomicInteger sent = new AtomicInteger();
        AsyncClient<Object> client = (request, options, context) -> {
            sent.incrementAndGet();
            out.countDown();
            return wire;
        };
        CompletableFuture<String> response =
                async.orders(fast().build(), b -> b.client(client)).create("x");
        out.await();
        assertThat(response.cancel(true)).isTrue();
        assertThat(wire).isCancelled();
        assertThatThrownBy(() -> get(response)).isInstanceOf(CancellationException.class);
        assertThat(sent).hasValue(1);
        // The operation may have been executed, so the listener hears that nothing is certain.
        assertEnd(UNKNOWN, 1);
        assertThat(events.get(0).id()).isPresent();
    }

    @Test
    void cancellingDuringAWaitSendsNothingMore() throws Exception {
        ExecutorService oneThread = Executors.newSingleThreadExecutor();
        CountDownLatch free = new CountDownLatch(1);
        CountDownLatch asked = new CountDownLatch(1);
        try {
            server.respond(Reply.status(503));
            AsyncOrders orders = async.orders(
                    fast().executor(attempt -> oneThread.execute(() -> {
                                asked.countDown();
                                try {
                                    free.await();
                                } catch (InterruptedException e) {
                                    throw new IllegalStateException(e);
                                }
                                attempt.run();
                            }))
                            .build(),
                    b -> b);
            CompletableFuture<String> response = orders.create("x");
            asked.await();
            response.cancel(false);
            free.countDown();
            oneThread.submit(() -> {}).get();
            assertThat(server.requests()).hasSize(1);
        } finally {
            oneThread.shutdownNow();
        }
    }

    /** No request is in flight, so the call is only in doubt if an earlier one left it so. */
    @ParameterizedTest
    @CsvSource({"503, FAILED", "504, UNKNOWN"})
    void cancellingDuringAWaitLeavesTheDoubtOfTheRequestsBefore(int status, IdempotenceClientEvent.Result result)
            throws Exception {
        server.respond(Reply.status(status));
        CountDownLatch waits = new CountDownLatch(1);
        AsyncOrders orders =
                async.orders(fast().executor(attempt -> waits.countDown()).build(), b -> b);
        CompletableFuture<String> response = orders.create("x");
        waits.await();
        response.cancel(true);
        assertEnd(result, 1);
    }

    @Test
    void callThatIsCancelledBeforeItReachedAnybodyLeavesNoDoubtInItsScope() throws Exception {
        CountDownLatch waits = new CountDownLatch(1);
        AsyncOrders orders = async.orders(
                fast().executor(attempt -> waits.countDown()).build(),
                b -> b.requestInterceptor(template -> template.target(nobody())));
        IdempotenceScope.with(IdempotenceId.of("job-1"), () -> {
            CompletableFuture<String> response = orders.create("x");
            waits.await();
            response.cancel(true);
            assertThat(CallScope.current().mayHaveTakenEffect()).isFalse();
            return response;
        });
        assertEnd(FAILED, 1);
    }

    @Test
    void callersOwnTimeoutStopsTheRetries() throws Exception {
        CountDownLatch received = new CountDownLatch(1);
        server.respond(Reply.hang().before(received::countDown));
        AsyncOrders orders = async.orders(
                fast().listener(event -> {
                            events.add(event);
                            ended.countDown();
                        })
                        .build(),
                b -> b);
        CompletableFuture<String> response = orders.create("x");
        assertThat(received.await(60, TimeUnit.SECONDS)).isTrue();
        response.orTimeout(500, TimeUnit.MILLISECONDS);
        assertThat(failure(response)).isInstanceOf(TimeoutException.class);
        // A thread that waits for a future is woken before its dependent stages run.
        assertThat(ended.await(60, TimeUnit.SECONDS)).isTrue();
        assertEnd(UNKNOWN, 1);
    }

    @Test
    void clientThatNeverEndsItsRequestLeavesTheCallUnknownWhenTheDeadlineIsOver() throws Exception {
        async.warmUp();
        Wire wire = new Wire();
        AsyncOrders orders = async.orders(fast().deadline(Duration.ofSeconds(2)).build(), b -> b.client(wire));
        assertThat(failure(orders.create("x"))).isInstanceOf(FeignOutcomeUnknownException.class);
        assertEnd(UNKNOWN, 1);
        assertThat(failure(wire.requests.get(0))).isInstanceOf(CancellationException.class);
    }

    /** As one does whose token does not come. */
    @Test
    void interceptorThatHangsDoesNotKeepARetriedCallFromItsEnd() throws Exception {
        async.warmUp();
        server.respond(Reply.status(503));
        AtomicInteger made = new AtomicInteger();
        AsyncOrders orders = async.orders(
                fast().deadline(Duration.ofMillis(2_500))
                        .executor(async.threads)
                        .build(),
                b -> b.requestInterceptor(template -> {
                    if (made.incrementAndGet() == 2) {
                        try {
                            ended.await();
                        } catch (InterruptedException e) {
                            throw new IllegalStateException(e);
                        }
                    }
                }));
        assertThat(failure(orders.create("x"))).isInstanceOf(FeignException.ServiceUnavailable.class);
        assertEnd(FAILED, 2, 1);
        ended.countDown();
    }

    @Test
    void deadlineIsNotThatOfACallWithoutAnId() throws Exception {
        async.warmUp();
        Wire wire = new Wire();
        AsyncOrders orders = async.orders(fast().deadline(Duration.ofSeconds(2)).build(), b -> b.client(wire));
        CompletableFuture<String> list = orders.list();
        assertThat(failure(orders.create("x"))).isInstanceOf(FeignOutcomeUnknownException.class);
        assertThat(list).isNotDone();
    }

    @Test
    void responseThatNeverEndsLeavesTheCallUnknownWhenTheDeadlineIsOver() throws Exception {
        async.warmUp();
        Wire wire = new Wire();
        AsyncOrders orders = async.orders(fast().deadline(Duration.ofSeconds(2)).build(), b -> b.client(wire));
        CompletableFuture<String> response = orders.create("x");
        StallingBody endless = new StallingBody();
        async.threads.execute(() -> wire.requests
                .get(0)
                .complete(Response.builder()
                        .status(200)
                        .headers(Map.of())
                        .request(Request.create(Request.HttpMethod.POST, "/orders", Map.of(), null, null, null))
                        .body(endless, null)
                        .build()));
        assertThat(failure(response)).isInstanceOf(FeignOutcomeUnknownException.class);
        assertEnd(UNKNOWN, 1);
        ended.countDown();
    }

    static Stream<Reply> errors() {
        return Stream.of(
                Reply.status(500),
                Reply.status(500).header("Idempotent-Replayed", "true"),
                Reply.status(400),
                Reply.status(303).header("Location", nobody() + "/login"));
    }

    /** The exception of a timeout would say that nothing was sent. */
    @ParameterizedTest
    @MethodSource("errors")
    void errorThatIsNotDecodedInTimeLeavesTheCallUnknown(Reply error) throws Exception {
        async.warmUp();
        // A response that comes before Feign awaits it is decoded by the caller, who would wait for its own end.
        CompletableFuture<Void> awaited = new CompletableFuture<>();
        server.respond(error.before(awaited::join));
        AsyncOrders orders = async.orders(
                fast().deadline(Duration.ofMillis(2_500)).maxAttempts(1).build(),
                b -> b.errorDecoder((method, response) -> {
                    try {
                        ended.await();
                    } catch (InterruptedException e) {
                        Thread.currentThread().interrupt();
                    }
                    return FeignException.errorStatus(method, response);
                }));
        CompletableFuture<String> response = orders.create("x");
        awaited.complete(null);
        assertThat(failure(response)).isInstanceOf(FeignOutcomeUnknownException.class);
        assertEnd(UNKNOWN, 1, 1);
        ended.countDown();
    }

    /** A socket does not heed the interrupt that comes of it. */
    @Test
    void responseThatComesAfterTheCallWasCancelledIsClosed() throws Exception {
        CountDownLatch out = new CountDownLatch(1);
        CountDownLatch cancelled = new CountDownLatch(1);
        CountDownLatch closed = new CountDownLatch(1);
        Client sockets = new Client.Default(null, null);
        Client deaf = (request, options) -> {
            Response response = sockets.execute(request, options);
            out.countDown();
            while (cancelled.getCount() > 0) {
                try {
                    cancelled.await();
                } catch (InterruptedException e) {
                    // Heard, and not heeded.
                }
            }
            return response.toBuilder()
                    .body(new ClosingBody(response.body(), closed::countDown))
                    .build();
        };
        CompletableFuture<String> response = async.orders(
                        fast().build(), b -> b.client(new AsyncClient.Default<>(deaf, async.threads)))
                .create("x");
        out.await();
        response.cancel(true);
        cancelled.countDown();
        assertThat(closed.await(60, TimeUnit.SECONDS)).isTrue();
    }

    @Test
    void deadlineEndsTheAttempts() {
        server.respond(Reply.status(503));
        IdempotenceClientConfig config = fast().maxAttempts(100)
                .waitBound(Duration.ofSeconds(20))
                .maxWait(Duration.ofSeconds(20))
                .jitter(0)
                .deadline(Duration.ofSeconds(10))
                .build();
        assertThat(failure(async.orders(config, b -> b).create("x")))
                .isInstanceOf(FeignException.ServiceUnavailable.class);
        assertThat(server.requests()).hasSize(1);
    }

    @Test
    void cancellingTheFutureOfALayerIsHandedDown() {
        CompletableFuture<String> layered = new CompletableFuture<>();
        AsyncOrders orders = async.orders(
                fast().build(),
                b -> b.invocationHandlerFactory((target, dispatch) -> (proxy, method, args) -> layered));
        orders.create("x").cancel(true);
        assertThat(layered).isCancelled();
    }

    private interface UnwrappedOrders {
        @RequestLine("POST /orders")
        CompletableFuture<String> create(String body) throws IOException;
    }

    @Test
    void executedCallWhoseDecoderThrowsARetryableExceptionIsUnknownAlsoIfItIsUnwrapped() throws IOException {
        UnwrappedOrders orders = IdempotentFeign.install(
                        AsyncFeign.builder()
                                .client(new AsyncClient.Default<>(new Client.Default(null, null), async.threads))
                                .exceptionPropagationPolicy(ExceptionPropagationPolicy.UNWRAP)
                                .decoder((response, type) -> {
                                    throw CallOutcomeTest.retryable(response);
                                }),
                        fast().build())
                .target(new HardCodedTarget<>(UnwrappedOrders.class, "orders", server.url()));
        assertThat(failure(orders.create("x")))
                .isInstanceOf(FeignOutcomeUnknownException.class)
                .hasRootCauseMessage("of the decoder");
        assertEnd(UNKNOWN, 3);
    }

    /** Its thread waits for nothing. */
    @Test
    void callOfAnInterruptedThreadIsSent() throws Exception {
        AsyncOrders orders = async.orders();
        Thread.currentThread().interrupt();
        CompletableFuture<String> response = orders.create("x");
        assertThat(Thread.interrupted()).isTrue();
        assertThat(get(response)).isEqualTo("ok");
    }
}
