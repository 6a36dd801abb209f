package io.idempotence.it.client;

import static com.github.tomakehurst.wiremock.client.WireMock.aResponse;
import static io.idempotence.client.IdempotenceClientEvent.Result.FAILED;
import static io.idempotence.client.IdempotenceClientEvent.Result.SUCCEEDED;
import static io.idempotence.client.IdempotenceClientEvent.Result.UNKNOWN;
import static io.idempotence.it.wire.Latches.awaitLatch;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.awaitility.Awaitility.await;

import com.github.tomakehurst.wiremock.http.Fault;
import feign.AsyncFeign.AsyncBuilder;
import feign.BaseBuilder;
import feign.ExceptionPropagationPolicy;
import feign.FeignException;
import feign.Request;
import feign.Response;
import feign.RetryableException;
import feign.codec.DecodeException;
import feign.jackson.JacksonDecoder;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceClientConfigBuilder;
import io.idempotence.client.IdempotenceClientEvent.Result;
import io.idempotence.client.feign.FeignOutcomeUnknownException;
import io.idempotence.client.feign.FeignRequestRefusedException;
import io.idempotence.client.feign.IdempotentFeign;
import io.idempotence.it.client.ClientUnderTest.End;
import io.idempotence.it.wire.RawServer;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** {@link ClientContract} over Feign, and the treatment of a response by the layers of Feign. Subclasses choose the HTTP client. */
abstract class AttemptContract extends ClientContract {
    private static final String CUT = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\nhal";

    @Override
    final ClientUnderTest client(IdempotenceClientConfig config, String url, Duration connect, Duration read) {
        Request.Options options = new Request.Options(connect, read, true);
        Orders orders = target(install(builder().options(options), config), url);
        return body -> End.ofFeign(() -> orders.create(body));
    }

    @Override
    final Class<? extends Throwable> failureToSend() {
        return RetryableException.class;
    }

    @Override
    final Class<?> logger() {
        return IdempotentFeign.class;
    }

    @Override
    final String method() {
        return (builder() instanceof AsyncBuilder ? "AsyncOrders" : "Orders") + "#create(String)";
    }

    @Override
    final Result endOfAStoredError() {
        return FAILED;
    }

    // ---- sent, and no response

    /** "retry only with an ID". */
    @ParameterizedTest
    @EnumSource
    void lostResponseOfACallWithoutAnIdIsTheUsualException(Fault fault) {
        alwaysGet(aResponse().withFault(fault));
        Orders orders = orders();
        assertThatThrownBy(() -> orders.unprotected("x"))
                .isInstanceOf(FeignException.class)
                .isNotInstanceOf(FeignOutcomeUnknownException.class);
        assertThat(ids()).isNotEmpty().containsOnly("");
        assertEnd(FAILED, 1);
    }

    /** A body lost after a 2xx status line (Feign makes of it a plain exception with status 200). */
    @Test
    void responseWithAnInterruptedBodyIsRequestedAgain() {
        List<String> ids = new CopyOnWriteArrayList<>();
        try (RawServer server = RawServer.start((request, client) -> {
            ids.add(request.header("Idempotency-Key"));
            String response = request.header("Idempotency-Attempt").equals("1") ? CUT : WHOLE;
            client.getOutputStream().write(response.getBytes(StandardCharsets.ISO_8859_1));
        })) {
            assertThat(target(installed(fast()), server.url()).create("x")).isEqualTo("whole");
        }
        assertThat(ids).hasSizeGreaterThan(1);
        assertThat(ids.stream().distinct()).hasSize(1);
        assertEnd(SUCCEEDED, 2);
    }

    @Test
    void bodyThatIsAlwaysCutIsUnknown() {
        try (RawServer server = RawServer.start(
                (request, client) -> client.getOutputStream().write(CUT.getBytes(StandardCharsets.ISO_8859_1)))) {
            Orders orders = target(installed(fast()), server.url());
            assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignOutcomeUnknownException.class);
        }
        assertEnd(UNKNOWN, 3);
    }

    /** The exception of a lost body holds the request's headers where the response's belong. */
    @Test
    void headersOfTheRequestAreNotTakenForThoseOfTheResponse() {
        attemptsUpTo(2, aResponse().withFault(Fault.MALFORMED_RESPONSE_CHUNK));
        assertThat(orders().createWithHeadersOfAResponse("x")).isEqualTo(OK);
        assertEnd(SUCCEEDED, 3);
    }

    // ---- statuses

    /** Without an ID. */
    @ParameterizedTest
    @ValueSource(ints = {425, 429, 500, 502, 503, 504})
    void retryableStatusIsFinalWithoutAnId(int status) {
        alwaysGet(status(status));
        Orders orders = orders();
        assertThatThrownBy(() -> orders.put("x"))
                .isInstanceOfSatisfying(
                        FeignException.class, e -> assertThat(e.status()).isEqualTo(status));
        assertThat(received()).hasSize(1);
        assertEnd(FAILED, 1);
    }

    // ---- refusals

    @Test
    void exceptionOfARefusalHasTheResponseOfTheServer() {
        alwaysGet(refusal("key-reused", 422));
        Orders orders = orders();
        FeignRequestRefusedException refused =
                catchThrowableOfType(FeignRequestRefusedException.class, () -> orders.create("x"));
        assertThat(refused.status()).isEqualTo(422);
        assertThat(refused.contentUTF8()).isEqualTo("{\"status\":422}");

        alwaysGet(refusal("outcome-unknown", 409));
        assertThatThrownBy(() -> orders.create("x"))
                .isInstanceOfSatisfying(
                        FeignOutcomeUnknownException.class,
                        unknown -> assertThat(unknown.status()).isEqualTo(409));
    }

    @ParameterizedTest
    @CsvSource({"key-missing,400", "key-invalid,400", "key-reused,422", "result-unavailable,409"})
    void refusalIsAnExceptionAlsoWhereAResponseIsReturned(String code, int status) {
        alwaysGet(refusal(code, status));
        Orders orders = orders();
        assertThatThrownBy(() -> orders.raw("x")).isInstanceOf(FeignRequestRefusedException.class);
        assertThat(received()).hasSize(1);
    }

    /** The failure that keeps the next attempt from being sent does not show what became of the one before. */
    @Test
    void interceptorThatFailsAfterALostResponseLeavesTheOutcomeUnknown() {
        attempt(1, aResponse().withFault(Fault.CONNECTION_RESET_BY_PEER));
        AtomicInteger tokens = new AtomicInteger();
        Orders orders = orders(builder -> builder.requestInterceptor(template -> {
            if (tokens.incrementAndGet() > 1) {
                throw new IllegalStateException("no token");
            }
        }));
        assertThatThrownBy(() -> orders.create("x"))
                .isInstanceOf(FeignOutcomeUnknownException.class)
                .hasRootCauseMessage("no token");
        assertEnd(UNKNOWN, 2);
    }

    /** It was the interceptor's exception, which reads as "nothing was sent". */
    @Test
    void interceptorThatFailsAfterAFailureOfTheHandlerIsNotTheEnd() {
        alwaysGet(status(500));
        AtomicInteger tokens = new AtomicInteger();
        Orders orders = orders(builder -> builder.requestInterceptor(template -> {
            if (tokens.incrementAndGet() > 1) {
                throw new IllegalStateException("no token");
            }
        }));
        End end = End.ofFeign(() -> orders.create("x"));
        assertStatus(end, 500);
        assertThat(end.thrown().getSuppressed())
                .singleElement()
                .extracting(Throwable::getMessage)
                .isEqualTo("no token");
        assertEnd(FAILED, 2);
    }

    @Test
    void interceptorThatFailsFirstIsTheCallersOwnException() {
        Orders orders = orders(builder -> builder.requestInterceptor(template -> {
            throw new IllegalStateException("no token");
        }));
        assertThatThrownBy(() -> orders.create("x"))
                .isExactlyInstanceOf(IllegalStateException.class)
                .hasMessage("no token");
        assertThat(received()).isEmpty();
    }

    // ---- what the layers above make of a response

    /** Row "DecodeException"; but what Jackson throws is an IOException, of which Feign makes a plain exception. */
    @Test
    void responseThatCannotBeDecodedIsFinal() {
        alwaysGet(ok().withBody("{ this is no json"));
        Orders orders = orders(builder -> builder.decoder(new JacksonDecoder()));
        assertThatThrownBy(() -> orders.number("x"))
                .isExactlyInstanceOf(FeignException.class)
                .extracting(thrown -> ((FeignException) thrown).status())
                .isEqualTo(200);
        assertThat(received()).hasSize(1);
        assertEnd(FAILED, 1);
    }

    /** Row "DecodeException". */
    @Test
    void decoderThatThrowsIsFinal() {
        Orders orders = orders(builder -> builder.decoder((response, type) -> {
            throw new IllegalStateException("no such thing");
        }));
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(DecodeException.class);
        assertThat(received()).hasSize(1);
        assertEnd(FAILED, 1);
    }

    @Test
    void redirectIsTheResponseWhereTheOptionsForbidToFollow() {
        alwaysGet(status(307).withHeader("Location", "/elsewhere"));
        Request.Options options = new Request.Options(5, TimeUnit.SECONDS, 5, TimeUnit.SECONDS, false);
        Orders orders = orders(builder -> builder.options(options));
        assertStatus(End.ofFeign(() -> orders.create("x")), 307);
        assertThat(received()).hasSize(1);
    }

    /** UNWRAP throws causes, which have no status. */
    @Test
    void unwrappedExceptionsAreRetriedLikeTheOthers() {
        attempt(1, status(503).withHeader("Retry-After-Ms", "1"));
        attempt(2, aResponse().withFault(Fault.CONNECTION_RESET_BY_PEER));
        Orders orders = orders(builder -> builder.exceptionPropagationPolicy(ExceptionPropagationPolicy.UNWRAP));
        assertThat(orders.create("x")).isEqualTo(OK);
        assertOneId();
        assertEnd(SUCCEEDED, 3);
    }

    @Test
    void unknownOutcomeIsTypedWithAndWithoutUnwrapping() {
        alwaysGet(aResponse().withFault(Fault.CONNECTION_RESET_BY_PEER));
        Orders orders = orders(builder -> builder.exceptionPropagationPolicy(ExceptionPropagationPolicy.UNWRAP));
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignOutcomeUnknownException.class);
        assertEnd(UNKNOWN, 3);
    }

    /** What an error decoder throws neither hides a retryable status nor makes a final one retryable. */
    @Test
    void errorDecoderNeitherHidesNorForcesARetry() {
        class OrderException extends RuntimeException {
            OrderException(String message) {
                super(message);
            }
        }
        attempt(1, status(429));
        attempt(2, status(404));
        Orders orders = orders(builder -> builder.errorDecoder((method, response) -> {
            if (response.status() == 404) {
                return new RetryableException(
                        404, "please", response.request().httpMethod(), (Long) null, response.request());
            }
            return new OrderException("mine " + response.status());
        }));
        assertThatThrownBy(() -> orders.create("x"))
                .isExactlyInstanceOf(RetryableException.class)
                .hasMessage("please");
        assertEnd(FAILED, 2);

        events.clear();
        provider.resetMappings();
        alwaysGet(status(503));
        assertThatThrownBy(() -> orders.create("x"))
                .isExactlyInstanceOf(OrderException.class)
                .hasMessage("mine 503");
        assertEnd(FAILED, 3);
    }

    @Test
    void refusalIsTypedUnderACustomErrorDecoderAndKeepsItsException() {
        alwaysGet(refusal("key-reused", 422));
        Orders orders =
                orders(builder -> builder.errorDecoder((method, response) -> new IllegalStateException("mine")));
        assertThatThrownBy(() -> orders.create("x"))
                .isInstanceOf(FeignRequestRefusedException.class)
                .hasRootCauseMessage("mine");
    }

    /** A Response return type makes no exception of an error. */
    @Test
    void rawResponseIsRetriedAndTheLastOneIsTheCallers() throws IOException {
        attemptsUpTo(2, status(503));
        Orders orders = orders();
        try (Response response = orders.raw("x")) {
            assertThat(response.status()).isEqualTo(200);
            assertThat(text(response)).isEqualTo(OK);
        }
        assertThat(attempts()).containsExactly("1", "2", "3");

        alwaysGet(status(503));
        try (Response response = orders.raw("x")) {
            assertThat(response.status()).isEqualTo(503);
            assertThat(text(response)).isEqualTo("status 503");
        }
        assertThat(events).hasSize(2);
        assertThat(events.get(1).attempts()).isEqualTo(3);
    }

    @Test
    void rawResponseOfALostResponseIsUnknown() {
        alwaysGet(aResponse().withFault(Fault.CONNECTION_RESET_BY_PEER));
        Orders orders = orders();
        assertThatThrownBy(() -> orders.raw("x")).isInstanceOf(FeignOutcomeUnknownException.class);
    }

    // ---- the end

    /** Row "caller interrupted": stop, flag kept. */
    @Test
    void interruptedCallerMakesNoFurtherAttemptAndKeepsItsFlag() throws InterruptedException {
        alwaysGet(status(503).withHeader("Retry-After", "20"));
        assertInterruptEndsTheWaiting();
    }

    private void assertInterruptEndsTheWaiting() throws InterruptedException {
        Orders orders = orders();
        InterruptedCaller caller = new InterruptedCaller(() -> orders.create("x"));
        await().until(() -> received().size() == 1 && caller.waits());
        caller.interrupt();
        assertThat(caller.thrown()).isInstanceOf(whatInterruptedCallersSee());
        assertThat(caller.keptItsFlag()).isTrue();
        assertThat(received()).hasSize(1);
    }

    /** Between polls. */
    @Test
    void interruptedCallerOfAnExecutionInProgressAsksNoMoreAndKeepsItsFlag() throws InterruptedException {
        alwaysGet(refusal("in-progress", 409).withHeader("Retry-After", "20"));
        assertInterruptEndsTheWaiting();
        await().untilAsserted(() -> assertEnd(UNKNOWN, 1));
    }

    /** While a request is in flight, whether or not its client notices. */
    @Test
    void callerInterruptedWhileARequestIsInFlightMakesNoFurtherAttemptAndKeepsItsFlag() throws InterruptedException {
        CountDownLatch arrived = new CountDownLatch(1);
        CountDownLatch interrupted = new CountDownLatch(1);
        AtomicInteger requests = new AtomicInteger();
        try (RawServer server = RawServer.start((request, client) -> {
            requests.incrementAndGet();
            arrived.countDown();
            awaitLatch(interrupted);
            client.getOutputStream()
                    .write("HTTP/1.1 503 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                            .getBytes(StandardCharsets.ISO_8859_1));
        })) {
            Orders orders = target(installed(fast()), server.url());
            InterruptedCaller caller = new InterruptedCaller(() -> orders.create("x"));
            awaitLatch(arrived);
            caller.interrupt();
            if (interruptedCallersWaitForTheResponse()) {
                interrupted.countDown();
            }
            assertThat(caller.thrown()).isInstanceOf(whatInterruptedCallersSee());
            interrupted.countDown();
            assertThat(caller.keptItsFlag()).isTrue();
            await().until(() -> events.size() == 1);
        }
        assertThat(requests).hasValue(1);
    }

    Class<? extends Throwable> whatInterruptedCallersSee() {
        return FeignException.class;
    }

    /** Or may: of who does not, a response in the meantime could find the call still going on. */
    boolean interruptedCallersWaitForTheResponse() {
        return true;
    }

    private BaseBuilder<?, ?> installed(IdempotenceClientConfigBuilder config) {
        return install(feign(), config.build());
    }

    private static String text(Response response) throws IOException {
        return new String(response.body().asInputStream().readAllBytes(), StandardCharsets.UTF_8);
    }
}
