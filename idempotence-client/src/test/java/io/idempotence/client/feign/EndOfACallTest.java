package io.idempotence.client.feign;

import static io.idempotence.client.IdempotenceClientEvent.Result.FAILED;
import static io.idempotence.client.IdempotenceClientEvent.Result.SUCCEEDED;
import static io.idempotence.client.IdempotenceClientEvent.Result.UNKNOWN;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;

import feign.Client;
import feign.Feign;
import feign.FeignException;
import feign.Request;
import feign.RequestInterceptor;
import feign.RequestTemplate;
import feign.Response;
import feign.RetryableException;
import feign.Retryer;
import feign.codec.DecodeException;
import feign.codec.EncodeException;
import io.github.resilience4j.retry.MaxRetriesExceededException;
import io.github.resilience4j.retry.Retry;
import io.github.resilience4j.retry.RetryConfig;
import io.github.resilience4j.retry.RetryRegistry;
import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceClientEvent;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.OutcomeUnknown;
import io.idempotence.client.feign.TestServer.Reply;
import java.io.IOException;
import java.net.ConnectException;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Promise P7: every call ends in a response, a typed refusal, or a typed unknown. */
class EndOfACallTest extends FeignTestBase {
    private static final IdempotenceId JOB = IdempotenceId.of("job-1");

    private final Client sockets = new Client.Default(null, null);

    /** Really sends, then loses what comes back, once for each failure. */
    private Client losing(IOException... failures) {
        Queue<IOException> left = new ArrayDeque<>(List.of(failures));
        return (request, options) -> {
            Response response = sockets.execute(request, options);
            IOException failure = left.poll();
            if (failure == null) {
                return response;
            }
            response.close();
            throw failure;
        };
    }

    /** As a decoder does with what it has no use for. */
    @Test
    void bodyThatStallsWhileItIsSkippedEndsWithTheDeadline() {
        StallingBody body = new StallingBody();
        Client stalls = (request, options) -> {
            try (Response response = sockets.execute(request, options)) {
                return response.toBuilder().body(body, 10).build();
            }
        };
        Orders orders = orders(
                fast().deadline(Duration.ofMillis(300)).build(),
                builder -> builder.client(stalls)
                        .decoder((response, type) ->
                                response.body().asInputStream().skip(10)));
        try {
            assertTimeoutPreemptively(
                    Duration.ofSeconds(20),
                    () -> assertThatThrownBy(() -> orders.create("x")).isInstanceOf(OutcomeUnknown.class));
        } finally {
            body.end();
        }
    }

    private void assertEnd(IdempotenceClientEvent.Result result, int attempts, int requests) {
        assertThat(events).hasSize(1);
        assertThat(events.get(0).result()).isEqualTo(result);
        assertThat(events.get(0).attempts()).isEqualTo(attempts);
        assertThat(events.get(0).requests()).isEqualTo(requests);
    }

    @Test
    void unknownStaysUnknownWhenLaterAttemptsWereNotSent() {
        Client client = losing(new SocketTimeoutException(), new ConnectException(), new ConnectException());
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
                b -> b.client(losing(new SocketTimeoutException())).requestInterceptor(template -> {
                    if (times.incrementAndGet() == 2) {
                        throw new NoClassDefFoundError("gone");
                    }
                }));
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(NoClassDefFoundError.class);
        assertEnd(UNKNOWN, 2, 1);
    }

    @Test
    void scopeRemembersThatItsCallEndedInDoubt() {
        Orders orders = orders(
                fast().maxAttempts(1).build(),
                b -> b.client(losing(new SocketTimeoutException(), new ConnectException())));
        IdempotenceScope.with(JOB, () -> {
            FeignOutcomeUnknownException first =
                    catchThrowableOfType(FeignOutcomeUnknownException.class, () -> orders.create("x"));
            FeignOutcomeUnknownException second =
                    catchThrowableOfType(FeignOutcomeUnknownException.class, () -> orders.create("x"));
            assertThat(second.firstSentAt()).isEqualTo(first.firstSentAt());
        });
        // Another scope knows nothing of it.
        Orders refused = refused(fast().maxAttempts(1).build());
        assertThatThrownBy(() -> IdempotenceScope.with(JOB, () -> refused.create("x")))
                .isExactlyInstanceOf(RetryableException.class);
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

    /** It did not go there. */
    @Test
    void callThatWasRedirectedToAnotherOriginMayBeMadeAgainInItsScope() {
        server.respond(Reply.status(307).header("Location", nobody() + "/orders"));
        Orders orders = orders();
        IdempotenceScope.with(JOB, () -> {
            assertThatThrownBy(() -> orders.create("x"))
                    .isInstanceOfSatisfying(
                            FeignException.class, e -> assertThat(e.status()).isEqualTo(307));
            assertThat(orders.create("x")).isEqualTo("ok");
        });
        assertThat(server.ids()).containsExactly("\"job-1\"", "\"job-1\"");
    }

    private FeignException endOf(Orders orders) {
        return catchThrowableOfType(FeignException.class, () -> orders.create("x"));
    }

    /** Carried out, and the response is there to be read again, by a client that can. */
    @Test
    void responseThatCouldNotBeDecodedIsAskedForAgainUnderTheIdOfItsException() {
        FeignException unreadable = endOf(orders(
                fast().build(),
                b -> b.decoder((response, type) -> {
                    throw new IllegalStateException("bad json");
                })));
        assertThat(unreadable).isInstanceOf(DecodeException.class);
        IdempotenceId id = IdempotentFeign.idOf(unreadable).orElseThrow();
        assertThat(events.get(0).id()).hasValue(id);
        assertThat(IdempotenceScope.resume(id, Instant.now(), () -> orders().create("x")))
                .isEqualTo("ok");
        assertThat(server.ids()).containsExactly("\"" + id + "\"", "\"" + id + "\"");
    }

    @ParameterizedTest
    @ValueSource(ints = {404, 503, 504})
    void exceptionOfAnErrorStatusTellsTheId(int status) {
        server.respond(Reply.status(status), Reply.status(status), Reply.status(status));
        assertThat(IdempotentFeign.idOf(endOf(orders())))
                .isPresent()
                .isEqualTo(events.get(0).id());
    }

    @Test
    void exceptionOfACallThatWasNotSentTellsTheIdAndThatOfACallWithoutOneDoesNot() {
        Orders refused = refused(fast().build());
        assertThat(IdempotentFeign.idOf(endOf(refused)))
                .isPresent()
                .isEqualTo(events.get(0).id());
        FeignException without = catchThrowableOfType(FeignException.class, () -> refused.unprotected("x"));
        assertThat(IdempotentFeign.idOf(without)).isEmpty();
        assertThat(IdempotentFeign.idOf(new FeignException(500, "without a request") {}))
                .isEmpty();
    }

    /** The exception of a client that this was not installed on. */
    @Test
    void exceptionOfARequestWithAHeaderOfAnotherFormTellsNoId() {
        Request foreign = Request.create(
                Request.HttpMethod.POST,
                "http://127.0.0.1/orders",
                Map.of("Idempotency-Key", List.of("\"half quoted")),
                new byte[0],
                StandardCharsets.UTF_8,
                new RequestTemplate());
        FeignException end = new FeignException.NotFound("404", foreign, null, Map.of());
        assertThat(IdempotentFeign.idOf(end)).isEmpty();
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
        Orders orders = orders(fast().build(), b -> b.client(losing(new SocketTimeoutException())));
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

    @Test
    void serverIsAskedToHoldADuplicateUnlessTheCallerSaysHowLong() {
        orders().create("x");
        orders(fast().preferWait(Duration.ZERO).build()).create("x");
        orders(fast().build(), b -> b.requestInterceptor(t -> t.header("Prefer", "respond-async, wait=1")))
                .create("x");
        orders(fast().build(), b -> b.requestInterceptor(t -> t.header("Prefer", "return=minimal")))
                .create("x");
        assertThat(server.requests().stream().map(r -> String.join("|", r.header("Prefer"))))
                .containsExactly("wait=5", "", "respond-async, wait=1", "return=minimal|wait=5");
    }

    @ParameterizedTest
    @CsvSource({"10000, wait=5", "4000, wait=3", "1400, ''", "200, ''"})
    void theServerIsNotAskedToHoldADuplicateForLongerThanThisSideListens(long readTimeout, String expected) {
        orders(fast().build(), b -> b.options(readTimeout(readTimeout))).create("x");
        assertThat(String.join("|", server.requests().get(0).header("Prefer"))).isEqualTo(expected);
        assertThat(server.requests().get(0).id()).isNotEmpty();
        assertThat(server.requests().get(0).body()).isEqualTo("x");
    }

    @Test
    void callerWhoReadsTheResponseHimselfHasAllTheTimeHeLikes() throws Exception {
        server.respond(Reply.ok("x".repeat(10_000)).drip(Duration.ofMillis(20)));
        Orders orders = orders(fast().deadline(Duration.ofMillis(500)).build());
        try (Response response = orders.raw("x")) {
            assertThat(response.body().asInputStream().readAllBytes()).hasSize(10_000);
        }
    }

    /** A response that is not read holds a connection: it goes before the wait, not after it. */
    @ParameterizedTest
    @CsvSource({"503, ''", "409, in-progress"})
    void aResponseIsLetGoBeforeTheWait(int status, String refusal) throws Exception {
        Reply reply = refusal.isEmpty() ? Reply.status(status) : Reply.refusal(refusal, status);
        server.respond(reply.header("Retry-After", "20").body("not now"));
        CountDownLatch closed = new CountDownLatch(1);
        Client client = (request, options) -> {
            Response response = sockets.execute(request, options);
            return response.toBuilder()
                    .body(new ClosingBody(response.body(), closed::countDown))
                    .build();
        };
        Orders orders = orders(fast().build(), b -> b.client(client));
        AtomicReference<Throwable> end = new AtomicReference<>();
        Thread caller = new Thread(() -> end.set(catchThrowable(() -> orders.raw("x"))));
        caller.start();

        assertThat(closed.await(10, TimeUnit.SECONDS)).isTrue();
        assertThat(caller.isAlive()).isTrue();
        caller.interrupt();
        caller.join();
        assertThat(end.get()).isInstanceOf(FeignException.class);
        assertThat(((FeignException) end.get()).status()).isEqualTo(status);
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

    /** It took too long between the decision and the attempt: a pause of the machine, or of a listener. */
    @Test
    void attemptThatWouldBeginAfterTheDeadlineIsNotSent() {
        Duration deadline = Duration.ofMillis(300);
        RetryRegistry registry = RetryRegistry.ofDefaults();
        RetryConfig soon =
                RetryConfig.custom().waitDuration(Duration.ofMillis(1)).build();
        registry.retry("orders", soon).getEventPublisher().onRetry(event -> {
            try {
                new CountDownLatch(1).await(deadline.toMillis(), TimeUnit.MILLISECONDS);
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        });
        server.respond(Reply.status(503));
        Orders orders = orders(fast().retryRegistry(registry).deadline(deadline).build());
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignException.ServiceUnavailable.class);
        assertThat(server.requests()).hasSize(1);
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
                fast().retryRegistry(registry).build(), b -> b.client(losing(new SocketTimeoutException("lost"))));
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignOutcomeUnknownException.class);
        assertEnd(UNKNOWN, 1, 1);
    }

    @Test
    void attemptGetsNoMoreTimeThanTheCallHasLeft() {
        assertThat(timeoutsOfTwoAttemptsFor(60_000))
                .satisfiesExactly(
                        first -> assertThat(first).isPositive().isLessThanOrEqualTo(30_000),
                        second -> assertThat(second).isPositive().isLessThanOrEqualTo(29_700));
        assertThat(timeoutsOfTwoAttemptsFor(400)).containsExactly(400, 400);
    }

    /** What attempts with this read timeout get of a deadline of 30 s, the second one 300 ms after the first. */
    private List<Integer> timeoutsOfTwoAttemptsFor(long readTimeoutMillis) {
        server.respond(Reply.status(503).header("Retry-After-Ms", "300"));
        List<Integer> timeouts = new ArrayList<>();
        Client spy = (request, options) -> {
            timeouts.add(options.readTimeoutMillis());
            return sockets.execute(request, options);
        };
        Orders orders = orders(fast().build(), b -> b.client(spy).options(readTimeout(readTimeoutMillis)));
        assertThat(orders.create("x")).isEqualTo("ok");
        return timeouts;
    }

    @Test
    void rawResponseIsRetriedAndTheLastResponseReturned() throws IOException {
        AtomicInteger closed = new AtomicInteger();
        Client counting = (request, options) -> {
            Response response = sockets.execute(request, options);
            Response.Body body = response.body();
            return body == null
                    ? response
                    : response.toBuilder()
                            .body(new ClosingBody(body, closed::incrementAndGet))
                            .build();
        };
        server.respond(
                Reply.status(503).body("a"),
                Reply.status(503).body("b"),
                Reply.status(503).body("c"));
        try (Response response = orders(fast().build(), b -> b.client(counting)).raw("x")) {
            assertThat(response.status()).isEqualTo(503);
            assertThat(new String(
                            response.body().asInputStream().readAllBytes(), java.nio.charset.StandardCharsets.UTF_8))
                    .isEqualTo("c");
        }
        assertThat(server.requests()).hasSize(3);
        assertThat(closed.get()).isGreaterThanOrEqualTo(2);
        assertEnd(FAILED, 3, 3);
    }

    @Test
    void rawResponseOfAFinalErrorIsReturnedAndDoubtIsNot() {
        server.respond(Reply.status(404), Reply.ok("lost"), Reply.status(401));
        Orders orders = orders();
        try (Response response = orders.raw("x")) {
            assertThat(response.status()).isEqualTo(404);
        }
        Orders doubtful = orders(fast().build(), b -> b.client(losing(new SocketTimeoutException())));
        assertThatThrownBy(() -> doubtful.raw("x")).isInstanceOf(FeignOutcomeUnknownException.class);
        assertThat(server.requests()).hasSize(3);
    }

    @Test
    void failureOnThisSideIsThrownAsItIsUnlessARequestIsInDoubt() {
        AtomicInteger times = new AtomicInteger();
        Orders orders = orders(
                fast().build(),
                b -> b.client(losing(new SocketTimeoutException())).requestInterceptor(t -> {
                    if (times.incrementAndGet() != 2) {
                        throw new IllegalStateException("no token");
                    }
                }));
        assertThatThrownBy(() -> orders.create("x")).hasMessage("no token");
        assertThatThrownBy(() -> orders.create("x"))
                .isInstanceOf(FeignOutcomeUnknownException.class)
                .hasRootCauseMessage("no token");
        assertThat(server.requests()).hasSize(1);
    }

    @Test
    void unknownCallMadeAgainUnderItsIdIsTheSameCallForTheServer() {
        Client client = losing(new IOException("1"), new IOException("2"), new IOException("3"));
        Orders orders = orders(fast().build(), b -> b.client(client));
        FeignOutcomeUnknownException unknown =
                catchThrowableOfType(FeignOutcomeUnknownException.class, () -> orders.create("x"));
        IdempotenceId id = unknown.id();
        assertThat(IdempotenceScope.with(id, () -> orders.create("x"))).isEqualTo("ok");
        assertThat(new HashSet<>(server.ids())).hasSize(1);
    }

    static Stream<List<Reply>> responsesThatSettleNothing() {
        return Stream.of(
                List.of(Reply.status(503), Reply.status(503), Reply.status(503)),
                List.of(Reply.status(401)),
                List.of(Reply.status(404)),
                List.of(Reply.refusal("key-reused", 422)),
                Collections.nCopies(3, Reply.refusal("storage-unavailable", 503)));
    }

    /** Asked again about a call that may have been executed: what does not say what became of it, leaves that as it is. */
    @ParameterizedTest
    @MethodSource("responsesThatSettleNothing")
    void resumedCallIsAsUnknownAsBeforeUnlessItsResponseSettlesIt(List<Reply> responses) {
        Instant sent = Instant.now().minusSeconds(3600);
        server.respond(responses.toArray(Reply[]::new));
        FeignOutcomeUnknownException unknown = catchThrowableOfType(
                FeignOutcomeUnknownException.class,
                () -> IdempotenceScope.resume(JOB, sent, () -> orders().create("x")));
        assertThat(unknown.id()).isEqualTo(JOB);
        assertThat(unknown.firstSentAt()).isEqualTo(sent);
        assertEnd(UNKNOWN, responses.size(), responses.size());
    }

    @Test
    void resumedCallThatIsNotSentIsAsUnknownAsBefore() {
        Orders orders = refused(fast().build());
        assertThatThrownBy(() -> IdempotenceScope.resume(JOB, Instant.now(), () -> orders.create("x")))
                .isInstanceOf(FeignOutcomeUnknownException.class);
        // In a scope of the caller's own it may be the first one.
        assertThatThrownBy(() -> IdempotenceScope.with(JOB, () -> orders.create("x")))
                .isExactlyInstanceOf(RetryableException.class);
    }

    @Test
    void responseOfTheOperationSettlesAResumedCall() {
        server.respond(Reply.status(400), Reply.status(404).header("Idempotent-Replayed", "true"));
        assertThatThrownBy(() -> IdempotenceScope.resume(JOB, Instant.now(), () -> orders().create("x")))
                .isInstanceOf(FeignException.BadRequest.class);
        assertThatThrownBy(() -> IdempotenceScope.resume(JOB, Instant.now(), () -> orders().create("x")))
                .isInstanceOf(FeignException.NotFound.class);
        server.respond(Reply.refusal("result-unavailable", 409));
        assertThatThrownBy(() -> IdempotenceScope.resume(JOB, Instant.now(), () -> orders().create("x")))
                .isInstanceOf(FeignRequestRefusedException.class);
    }

    /** The scope's doubt is about another ID. */
    @Test
    void callWithAnOwnIdThatThisSideCannotMakeLeavesItsScopeAlone() {
        Orders losing = orders(
                fast().build(),
                b -> b.client((request, options) -> {
                    throw new SocketTimeoutException();
                }));
        Orders failing = orders(
                fast().build(),
                b -> b.requestInterceptor(template -> {
                    throw new EncodeException("cannot be written");
                }));
        IdempotenceScope.with(JOB, () -> {
            assertThatThrownBy(() -> losing.create("x")).isInstanceOf(FeignOutcomeUnknownException.class);
            assertThatThrownBy(() -> failing.createAs("own")).isInstanceOf(EncodeException.class);
        });
    }

    static Stream<UnaryOperator<Feign.Builder>> whatKeepsACallFromBeingMade() {
        RequestInterceptor failing = template -> {
            throw new FeignException.UnprocessableEntity(
                    "no token",
                    Request.create(Request.HttpMethod.POST, "/token", Map.of(), null, null, null),
                    null,
                    null);
        };
        return Stream.of(
                builder -> IdempotentFeign.install(builder).requestInterceptor(failing),
                builder -> IdempotentFeign.install(builder.requestInterceptor(failing)),
                builder -> IdempotentFeign.install(
                        builder.invocationHandlerFactory((target, dispatch) -> (proxy, method, args) -> {
                            failing.apply(new RequestTemplate());
                            return null;
                        })),
                builder -> IdempotentFeign.install(builder.encoder((object, type, template) -> {
                    throw new EncodeException("cannot be written");
                })));
    }

    /** What fails on the way, such as a call for a token, could be taken for the operation's own response. */
    @ParameterizedTest
    @MethodSource("whatKeepsACallFromBeingMade")
    void resumedCallThatThisSideCannotMakeIsAsUnknownAsBefore(UnaryOperator<Feign.Builder> failing) {
        Instant sent = Instant.now().minusSeconds(3600);
        Orders orders = target(failing.apply(Feign.builder()));
        FeignOutcomeUnknownException unknown = catchThrowableOfType(
                FeignOutcomeUnknownException.class, () -> IdempotenceScope.resume(JOB, sent, () -> orders.create("x")));
        assertThat(unknown.id()).isEqualTo(JOB);
        assertThat(unknown.firstSentAt()).isEqualTo(sent);
        assertThat(unknown.request().httpMethod()).isEqualTo(Request.HttpMethod.POST);
        assertThat(unknown.request().url()).endsWith("/orders");
        assertThat(unknown).hasCauseInstanceOf(FeignException.class);
        assertThat(server.requests()).isEmpty();
    }
}
