package io.idempotence.client.feign;

import static feign.Request.HttpMethod.POST;
import static io.idempotence.client.IdempotenceClientEvent.Result.FAILED;
import static io.idempotence.client.IdempotenceClientEvent.Result.SUCCEEDED;
import static io.idempotence.client.IdempotenceClientEvent.Result.UNKNOWN;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import feign.Client;
import feign.ExceptionPropagationPolicy;
import feign.Feign;
import feign.FeignException;
import feign.RequestLine;
import feign.Response;
import feign.RetryableException;
import feign.Retryer;
import feign.Target.HardCodedTarget;
import io.github.resilience4j.retry.MaxRetriesExceededException;
import io.github.resilience4j.retry.Retry;
import io.github.resilience4j.retry.RetryConfig;
import io.github.resilience4j.retry.RetryRegistry;
import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.feign.TestServer.Reply;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.ConnectException;
import java.net.SocketTimeoutException;
import java.time.Instant;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntConsumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Promise P7: every call ends in a response, a typed refusal, or a typed unknown. */
class CallOutcomeTest extends FeignTestBase {
    private final Client sockets = new Client.Default(null, null);

    @RegisterExtension
    private final SilentLog log = new SilentLog(IdempotentFeign.class.getName());

    @Test
    void unknownStaysUnknownWhenLaterAttemptsWereNotSent() {
        Client client = new LosingClient(new SocketTimeoutException(), new ConnectException(), new ConnectException());
        Orders orders = orders(fast().build(), b -> b.client(client));
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignOutcomeUnknownException.class);
        assertEnd(UNKNOWN, 3, 3);
    }

    static Stream<RuntimeException> exceptionsAfterSending() {
        return Stream.of(
                new IllegalStateException("Timeout on blocking read for 1000 MILLISECONDS"),
                new IllegalArgumentException("unexpected header in the response"),
                // It was taken for a refusal to send the first time.
                new RejectedExecutionException("full"),
                MaxRetriesExceededException.createMaxRetriesExceededException(Retry.ofDefaults("within")));
    }

    /** A client that hands its request to another thread, or sends it again by itself, gives up without an I/O failure. */
    @ParameterizedTest
    @MethodSource("exceptionsAfterSending")
    void uncheckedExceptionOfTheClientLeavesDoubt(RuntimeException thrown) {
        Client client = (request, options) -> {
            sockets.execute(request, options).close();
            throw thrown;
        };
        Orders orders = orders(fast().build(), b -> b.client(client));
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignOutcomeUnknownException.class);
        assertThat(events.get(0).result()).isEqualTo(UNKNOWN);
    }

    @Test
    void errorInDoubtIsTheUnknownToTheListener() {
        AtomicInteger times = new AtomicInteger();
        Orders orders = orders(
                fast().build(),
                b -> b.client(new LosingClient(new SocketTimeoutException())).requestInterceptor(template -> {
                    if (times.incrementAndGet() == 2) {
                        throw new NoClassDefFoundError("gone");
                    }
                }));
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(NoClassDefFoundError.class);
        assertEnd(UNKNOWN, 2, 1);
    }

    @Test
    void retryerOfTheClientIsForCallsWithoutAnIdOnly() {
        Orders orders = orders(
                fast().maxAttempts(2).build(),
                b -> b.retryer(new Retryer.Default(1, 1, 4)).client((request, options) -> {
                    throw new SocketTimeoutException();
                }));
        assertThatThrownBy(() -> orders.put("x")).isExactlyInstanceOf(RetryableException.class);
        assertThat(requestsOfTheLastCall()).isEqualTo(4);
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignOutcomeUnknownException.class);
        assertThat(requestsOfTheLastCall()).isEqualTo(2);
    }

    private int requestsOfTheLastCall() {
        return events.get(events.size() - 1).requests();
    }

    @ParameterizedTest
    @ValueSource(ints = {429, 500})
    void statusThatIsLeftOutOfThoseToRetryIsFinal(int status) {
        server.respond(Reply.status(status));
        Orders orders = orders(fast().statuses(418, 503).build());
        assertThatThrownBy(() -> orders.create("x"))
                .isInstanceOf(FeignException.class)
                .isNotInstanceOf(FeignOutcomeUnknownException.class);
        assertEnd(FAILED, 1, 1);
    }

    /** It was the plain exception of the status, which reads as the provider's own response. */
    @ParameterizedTest
    @ValueSource(ints = {502, 504, 520, 524, 598})
    void errorOfAGatewayIsInDoubtAlsoIfItIsNotRetried(int status) {
        server.respond(Reply.status(status));
        Orders orders = orders(fast().statuses(418, 503).build());
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignOutcomeUnknownException.class);
        assertEnd(UNKNOWN, 1, 1);
    }

    @Test
    void errorOfAGatewaySettlesNoEarlierDoubt() {
        server.respond(Reply.ok("lost"), Reply.status(520));
        Orders orders = orders(fast().build(), b -> b.client(new LosingClient(new SocketTimeoutException())));
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignOutcomeUnknownException.class);
        assertEnd(UNKNOWN, 2, 2);
    }

    /** It was the plain exception of the status, after which a caller makes the call again under a new ID. */
    @ParameterizedTest
    @ValueSource(ints = {408, 425, 429})
    void statusOfARateLimiterSettlesNoEarlierDoubtAlsoIfItIsNotRetried(int status) {
        server.respond(Reply.ok("lost"), Reply.status(status));
        Orders orders = orders(
                fast().statuses(502, 503, 504).build(), b -> b.client(new LosingClient(new SocketTimeoutException())));
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignOutcomeUnknownException.class);
        assertEnd(UNKNOWN, 2, 2);
    }

    @Test
    void statusThatIsAddedToTheRetriedOnesIsRetried() {
        server.respond(Reply.status(418), Reply.status(503));
        assertThat(orders(fast().statuses(418, 503).build()).create("x")).isEqualTo("ok");
        assertEnd(SUCCEEDED, 3, 3);
    }

    @Test
    void refusalOfAnUnprotectedCallIsTheUsualException() {
        server.respond(Reply.refusal("key-missing", 400));
        Orders orders = orders();
        assertThatThrownBy(() -> orders.put("x")).isExactlyInstanceOf(FeignException.BadRequest.class);
    }

    @Test
    void refusalUnknownToThisVersionIsFinalByItsStatus() {
        server.respond(Reply.refusal("from-the-future", 503));
        Orders orders = orders();
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignException.ServiceUnavailable.class);
        assertThat(server.requests()).hasSize(1);
    }

    /** HttpURLConnection cannot send PATCH and says so before it connects: nothing left, nothing is unknown. */
    @Test
    void aMethodThatTheClientCannotSendIsAFailureAtOnce() {
        Orders orders = orders();
        Throwable end = catchThrowable(() -> orders.patch("x"));
        assertThat(end)
                .isExactlyInstanceOf(RetryableException.class)
                .hasMessageContaining("Invalid HTTP method: PATCH");
        assertThat(server.requests()).isEmpty();
        assertEnd(FAILED, 1, 1);
    }

    /** A metrics library of the wrong version, say. */
    @Test
    void errorOfAnEventConsumerOfTheRetryTakesNoResponseAway() {
        RetryRegistry registry = RetryRegistry.ofDefaults();
        registry.retry("orders").getEventPublisher().onSuccess(event -> {
            throw new NoSuchMethodError("consumer");
        });
        server.respond(Reply.status(503));
        assertThat(orders(fast().retryRegistry(registry).build()).create("x")).isEqualTo("ok");
        assertEnd(SUCCEEDED, 2, 2);
    }

    @Test
    void errorOfThePredicateOfTheRetryEndsTheAttemptsAndHidesNothing() {
        RetryRegistry registry = RetryRegistry.ofDefaults();
        registry.retry(
                "orders",
                RetryConfig.custom()
                        .retryOnException(failure -> {
                            throw new NoSuchMethodError("predicate");
                        })
                        .build());
        Orders orders = orders(
                fast().retryRegistry(registry).build(),
                b -> b.client(new LosingClient(new SocketTimeoutException("lost"))));
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignOutcomeUnknownException.class);
        assertEnd(UNKNOWN, 1, 1);
    }

    /** A client that runs {@code closed} with the number of a response whose body is closed. */
    private Client closing(IntConsumer closed) {
        AtomicInteger responses = new AtomicInteger();
        return (request, options) -> {
            Response response = sockets.execute(request, options);
            int number = responses.incrementAndGet();
            return response.toBuilder()
                    .body(new ClosingBody(response.body(), () -> closed.accept(number)))
                    .build();
        };
    }

    @Test
    void rawResponsesThatAreRetriedAreClosedAndTheLastOneIsTheCallers() throws IOException {
        server.respond(
                Reply.status(503).body("a"),
                Reply.status(503).body("b"),
                Reply.status(503).body("c"));
        Set<Integer> closed = ConcurrentHashMap.newKeySet();
        Orders orders = orders(fast().build(), b -> b.client(closing(closed::add)));
        try (Response response = orders.raw("x")) {
            assertThat(closed).containsExactlyInAnyOrder(1, 2);
            assertThat(response.body().asInputStream()).hasContent("c");
        }
        assertEnd(FAILED, 3, 3);
    }

    /** It ended the call, and hid a doubt. */
    @Test
    void exceptionOfAResponseThatIsClosedDoesNotEndTheCall() {
        server.respond(Reply.status(503).body("a"));
        Client failing = closing(number -> {
            if (number == 1) {
                throw new IllegalStateException("pool is shut down");
            }
        });
        orders(fast().build(), b -> b.client(failing)).raw("x").close();
        assertEnd(SUCCEEDED, 2, 2);
        assertThat(log.messagesOfThisThread()).anyMatch(line -> line.contains("could not be closed"));
    }

    interface Exports {
        @RequestLine("POST /exports")
        InputStream export(String body);
    }

    /** Its decoder may give it to others too. */
    @Test
    void decodedValueIsNotClosed() {
        server.respond(Reply.refusal("key-reused", 404));
        AtomicBoolean closed = new AtomicBoolean();
        InputStream value = new ByteArrayInputStream(new byte[0]) {
            @Override
            public void close() {
                closed.set(true);
            }
        };
        Exports exports = IdempotentFeign.install(
                        Feign.builder().dismiss404().decoder((response, type) -> value), fast().build())
                .target(Exports.class, server.url());
        assertThatThrownBy(() -> exports.export("x")).isInstanceOf(FeignRequestRefusedException.class);
        assertThat(closed).isFalse();
    }

    @Test
    void rawResponseOfAFinalErrorIsReturnedAndDoubtIsNot() {
        server.respond(Reply.status(404), Reply.ok("lost"), Reply.status(401));
        Orders orders = orders();
        try (Response response = orders.raw("x")) {
            assertThat(response.status()).isEqualTo(404);
        }
        Orders doubtful = orders(fast().build(), b -> b.client(new LosingClient(new SocketTimeoutException())));
        assertThatThrownBy(() -> doubtful.raw("x")).isInstanceOf(FeignOutcomeUnknownException.class);
        assertThat(server.requests()).hasSize(3);
    }

    /** A layer dropped the first response. It was the exception of the second run, which reads as "not executed". */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void executedCallWhoseNextRunShowsNothingIsUnknown(boolean refused) {
        server.respond(Reply.ok("dropped"), Reply.status(503));
        Orders orders = orders(
                fast().maxAttempts(1).build(),
                b -> b.invocationHandlerFactory((target, dispatch) -> (proxy, method, args) -> {
                    dispatch.get(method).invoke(args);
                    if (refused) {
                        server.close();
                    }
                    return dispatch.get(method).invoke(args);
                }));
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignOutcomeUnknownException.class);
        assertThat(server.requests()).hasSize(refused ? 1 : 2);
        assertEnd(UNKNOWN, 2);
    }

    /** As of another call that the decoder makes. A caller may make a call again that ends so, under a new ID. */
    @Test
    void executedCallWhoseDecoderThrowsARetryableExceptionIsUnknown() {
        Orders orders = orders(
                fast().build(),
                b -> b.decoder((response, type) -> {
                    throw new RetryableException(
                            response.status(), "of the decoder", POST, (Long) null, response.request());
                }));
        assertThatThrownBy(() -> orders.create("x"))
                .isInstanceOf(FeignOutcomeUnknownException.class)
                .hasRootCauseMessage("of the decoder");
        assertEnd(UNKNOWN, 3);
    }

    private interface UnwrappedOrders {
        @RequestLine("POST /orders")
        String create(String body) throws IOException;
    }

    /** The policy leaves only the cause, which reads as "nothing was sent". */
    @Test
    void executedCallWhoseDecoderThrowsARetryableExceptionIsUnknownAlsoIfItIsUnwrapped() {
        UnwrappedOrders orders = IdempotentFeign.install(
                        Feign.builder()
                                .exceptionPropagationPolicy(ExceptionPropagationPolicy.UNWRAP)
                                .decoder((response, type) -> {
                                    throw retryable(response);
                                }),
                        fast().build())
                .target(new HardCodedTarget<>(UnwrappedOrders.class, "orders", server.url()));
        assertThatThrownBy(() -> orders.create("x"))
                .isInstanceOf(FeignOutcomeUnknownException.class)
                .hasRootCauseMessage("of the decoder");
        assertEnd(UNKNOWN, 3);
    }

    /** As the failure of a call that the decoder makes. */
    static RetryableException retryable(Response response) {
        return new RetryableException(
                response.status(),
                "of the decoder",
                POST,
                new ConnectException("of the decoder"),
                (Long) null,
                response.request());
    }

    @Test
    void interruptOfAnotherThreadDoesNotInterruptTheCaller() throws Exception {
        ExecutorService thread = Executors.newSingleThreadExecutor();
        Future<?> stopped = thread.submit(() -> new CountDownLatch(1).await(60, TimeUnit.SECONDS));
        thread.shutdownNow();
        AtomicBoolean again = new AtomicBoolean();
        Orders orders = orders(
                fast().build(),
                b -> b.client((request, options) -> {
                    if (again.compareAndSet(false, true)) {
                        throw new IOException(catchThrowable(() -> stopped.get(60, TimeUnit.SECONDS)));
                    }
                    return sockets.execute(request, options);
                }));
        String response = orders.create("x");
        assertThat(Thread.interrupted()).isFalse();
        assertThat(response).isEqualTo("ok");
        assertEnd(SUCCEEDED, 2);
    }

    @Test
    void interruptThatTheClientSwallowedIsKept() {
        Orders orders = orders(
                fast().build(),
                b -> b.client((request, options) -> {
                    Thread.currentThread().interrupt();
                    throw new IOException(catchThrowable(() -> new CountDownLatch(1).await()));
                }));
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignOutcomeUnknownException.class);
        assertThat(Thread.interrupted()).isTrue();
        assertEnd(UNKNOWN, 1);
    }

    @Test
    void callInDoubtOfAnInterruptedThreadIsUnknown() {
        Orders orders = orders();
        Throwable thrown =
                catchThrowable(() -> IdempotenceScope.resume(new IdempotenceId("job-1"), Instant.now(), () -> {
                    Thread.currentThread().interrupt();
                    return orders.create("x");
                }));
        assertThat(Thread.interrupted()).isTrue();
        assertThat(thrown).isInstanceOf(FeignOutcomeUnknownException.class);
        assertThat(server.requests()).isEmpty();
        assertEnd(UNKNOWN, 1, 0);
    }

    @Test
    void callOfAnInterruptedThreadWithoutAnIdIsSentAsEver() {
        Orders orders = orders();
        Thread.currentThread().interrupt();
        String response = orders.unprotected("x");
        assertThat(Thread.interrupted()).isTrue();
        assertThat(response).isEqualTo("ok");
    }
}
