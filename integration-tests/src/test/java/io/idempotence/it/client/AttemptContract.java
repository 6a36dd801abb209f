package io.idempotence.it.client;

import static com.github.tomakehurst.wiremock.client.WireMock.aResponse;
import static io.idempotence.client.IdempotenceClientEvent.Result.FAILED;
import static io.idempotence.client.IdempotenceClientEvent.Result.REFUSED;
import static io.idempotence.client.IdempotenceClientEvent.Result.REPLAYED;
import static io.idempotence.client.IdempotenceClientEvent.Result.SUCCEEDED;
import static io.idempotence.client.IdempotenceClientEvent.Result.UNKNOWN;
import static io.idempotence.it.wire.Latches.awaitLatch;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.awaitility.Awaitility.await;

import com.github.tomakehurst.wiremock.client.ResponseDefinitionBuilder;
import com.github.tomakehurst.wiremock.http.Fault;
import feign.BaseBuilder;
import feign.ExceptionPropagationPolicy;
import feign.FeignException;
import feign.Request;
import feign.Response;
import feign.RetryableException;
import feign.codec.DecodeException;
import feign.jackson.JacksonDecoder;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceClientEvent;
import io.idempotence.client.feign.FeignOutcomeUnknownException;
import io.idempotence.client.feign.FeignRequestRefusedException;
import io.idempotence.http.Refusal;
import io.idempotence.it.wire.Drip;
import io.idempotence.it.wire.FullBacklog;
import io.idempotence.it.wire.RawServer;
import java.io.IOException;
import java.net.ConnectException;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * What the client half makes of everything that can happen to an attempt, and of what the layers above make of a response. Subclasses
 * name the HTTP client.
 */
abstract class AttemptContract extends WireMockTestBase {
    private static final String CUT = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\nhal";
    private static final String WHOLE = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nwhole";

    // ---- no connection

    /** Certainly not sent. */
    @Test
    void refusedConnectionIsRetriedAndNothingIsUnknown() {
        String nobody = nobody();
        Orders orders = target(installed(fast()), nobody);
        assertThatThrownBy(() -> orders.create("x"))
                .isExactlyInstanceOf(RetryableException.class)
                .hasCauseInstanceOf(ConnectException.class);
        assertEnd(FAILED, 3);
    }

    /** It was in doubt, as the exception is that of a read timeout. */
    @Test
    void connectTimeoutIsNotSent() throws IOException {
        try (FullBacklog full = new FullBacklog()) {
            Request.Options options = new Request.Options(200, TimeUnit.MILLISECONDS, 200, TimeUnit.MILLISECONDS, true);
            Orders orders = target(
                    install(feign().options(options), fast().maxAttempts(2).build()), full.url());
            assertThatThrownBy(() -> orders.put("x")).isExactlyInstanceOf(RetryableException.class);
            assertEnd(FAILED, 1);
            events.clear();
            assertThatThrownBy(() -> orders.create("x"))
                    .isExactlyInstanceOf(RetryableException.class)
                    .hasRootCauseInstanceOf(SocketTimeoutException.class);
            assertEnd(FAILED, 2);
        }
    }

    /** "TLS trust failure": nothing was sent, and it would be so again. */
    @Test
    void certificateThatIsNotTrustedIsFinal() {
        Orders orders = target(installed(fast()), "https://127.0.0.1:" + provider.httpsPort());
        assertThatThrownBy(() -> orders.create("x")).isExactlyInstanceOf(RetryableException.class);
        assertEnd(FAILED, 1);
        assertThat(received()).isEmpty();
    }

    // ---- sent, and no answer

    /** Read timeout. */
    @Test
    void answerLaterThanTheReadTimeoutIsAskedForAgain() {
        attempt(1, ok().withFixedDelay(20_000));
        // On a busy machine later answers may be late as well.
        Orders orders = orders(fast().maxAttempts(50), builder -> builder.options(readTimeout(500)));
        assertThat(orders.create("x")).isEqualTo(OK);
        assertOneId();
        assertThat(attempts()).startsWith("1", "2");
        assertThat(events)
                .singleElement()
                .extracting(IdempotenceClientEvent::result)
                .isEqualTo(SUCCEEDED);
    }

    /** Reset, unexpected end, and an answer that is none. */
    @ParameterizedTest
    @EnumSource
    void lostAnswerIsAskedForAgainWithTheSameId(Fault fault) {
        attemptsUpTo(2, aResponse().withFault(fault));
        assertThat(orders().create("x")).isEqualTo(OK);
        assertOneId();
        assertThat(attempts()).containsExactly("1", "2", "3");
        assertEnd(SUCCEEDED, 3);
    }

    /** At the end of the attempts. */
    @ParameterizedTest
    @EnumSource
    void answerThatIsAlwaysLostIsUnknownAndTheExceptionCarriesTheId(Fault fault) {
        alwaysGet(aResponse().withFault(fault));
        Orders orders = orders();
        FeignOutcomeUnknownException unknown =
                catchThrowableOfType(FeignOutcomeUnknownException.class, () -> orders.create("x"));
        assertThat(unknown.attempts()).isEqualTo(3);
        assertThat(unknown.lastCause()).isNotNull();
        assertThat(ids()).isNotEmpty().allMatch(id -> id.equals("\"" + unknown.id() + "\""));
        assertEnd(UNKNOWN, 3);
    }

    /** "retry only with an ID". */
    @ParameterizedTest
    @EnumSource
    void lostAnswerOfACallWithoutAnIdIsTheUsualException(Fault fault) {
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
    void bodyCutAfterTheStatusLineIsAskedForAgain() {
        List<String> ids = new CopyOnWriteArrayList<>();
        try (RawServer server = RawServer.start((request, client) -> {
            ids.add(request.header("Idempotency-Key"));
            String answer = request.header("Idempotency-Attempt").equals("1") ? CUT : WHOLE;
            client.getOutputStream().write(answer.getBytes(StandardCharsets.ISO_8859_1));
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

    /** What is no HTTP, in the place of an answer. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "SSH-2.0-OpenSSH_9.6\r\n",
                "HTTP/1.1 abc OK\r\n\r\n",
                "HTTP/1.1\r\n\r\n",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
            })
    void answerThatIsNoneIsAskedForAgainAndUnknownAtTheEnd(String garbage) {
        AtomicBoolean better = new AtomicBoolean(true);
        Set<String> ids = ConcurrentHashMap.newKeySet();
        try (RawServer server = RawServer.start((request, client) -> {
            ids.add(request.header("Idempotency-Key"));
            boolean first = request.header("Idempotency-Attempt").equals("1");
            String answer = first || !better.get() ? garbage : WHOLE;
            client.getOutputStream().write(answer.getBytes(StandardCharsets.ISO_8859_1));
        })) {
            Orders orders = target(installed(fast()), server.url());
            assertThat(orders.create("x")).isEqualTo("whole");
            assertEnd(SUCCEEDED, 2);
            events.clear();
            better.set(false);
            assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignOutcomeUnknownException.class);
            assertEnd(UNKNOWN, 3);
        }
        assertThat(ids).hasSize(2);
    }

    @Test
    void answerThatIsCutInItsHeadersIsAskedForAgain() {
        try (RawServer server = RawServer.start((request, client) -> {
            boolean first = request.header("Idempotency-Attempt").equals("1");
            String answer = first ? "HTTP/1.1 200 OK\r\nContent-Le" : WHOLE;
            client.getOutputStream().write(answer.getBytes(StandardCharsets.ISO_8859_1));
        })) {
            assertThat(target(installed(fast()), server.url()).create("x")).isEqualTo("whole");
        }
    }

    /** No read waits for long, so no timeout sees it. What is dripped to the end past the deadline is no answer any more. */
    @Test
    void answerWhoseHeadersDripPastTheDeadlineIsUnknown() {
        try (RawServer server = RawServer.start((request, client) -> {
            String drops = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Drip: " + "x".repeat(30) + "\r\n\r\nwhole";
            Drip.write(client, drops);
        })) {
            Orders orders = target(installed(fast().deadline(Duration.ofMillis(400))), server.url());
            assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignOutcomeUnknownException.class);
        }
        assertEnd(UNKNOWN, 1);
    }

    /** The exception of a lost body holds the request's headers where the answer's belong. */
    @Test
    void headersOfTheRequestAreNotTakenForThoseOfTheAnswer() {
        attemptsUpTo(2, aResponse().withFault(Fault.MALFORMED_RESPONSE_CHUNK));
        assertThat(orders().createWithHeadersOfAnAnswer("x")).isEqualTo(OK);
        assertEnd(SUCCEEDED, 3);
    }

    /** Clients repeat a request whose pooled connection was dropped; the ID makes that safe. */
    @Test
    void requestThatTheClientRepeatsByItselfCarriesTheSameId() {
        Orders orders = orders();
        orders.create("opens a connection to be kept");
        provider.resetRequests();
        attempt(1, aResponse().withFault(Fault.EMPTY_RESPONSE));
        assertThat(orders.create("x")).isEqualTo(OK);
        assertOneId();
        assertThat(received()).hasSizeGreaterThan(1);
    }

    // ---- statuses

    @ParameterizedTest
    @ValueSource(ints = {408, 425, 429, 500, 502, 503, 504})
    void statusThatMayBeAnotherNextTimeIsTriedAgain(int status) {
        attemptsUpTo(2, status(status));
        assertThat(orders().create("x")).isEqualTo(OK);
        assertOneId();
        assertThat(attempts()).containsExactly("1", "2", "3");
        assertEnd(SUCCEEDED, 3);
    }

    /** Without an ID. */
    @ParameterizedTest
    @ValueSource(ints = {425, 429, 500, 502, 503, 504})
    void statusThatMayBeAnotherNextTimeIsFinalWithoutAnId(int status) {
        alwaysGet(status(status));
        Orders orders = orders();
        assertThatThrownBy(() -> orders.put("x"))
                .isInstanceOfSatisfying(
                        FeignException.class, e -> assertThat(e.status()).isEqualTo(status));
        assertThat(received()).hasSize(1);
        assertEnd(FAILED, 1);
    }

    /** At the end of the attempts: nothing is in doubt, so it is the exception everybody knows. */
    @ParameterizedTest
    @ValueSource(ints = {408, 425, 429, 500, 503})
    void statusThatStaysIsTheUsualException(int status) {
        alwaysGet(status(status));
        Orders orders = orders();
        assertThatThrownBy(() -> orders.create("x"))
                .isNotInstanceOf(FeignOutcomeUnknownException.class)
                .isInstanceOfSatisfying(
                        FeignException.class, e -> assertThat(e.status()).isEqualTo(status));
        assertThat(attempts()).containsExactly("1", "2", "3");
        assertEnd(FAILED, 3);
    }

    /** A gateway that gave up says nothing about what is behind it. */
    @ParameterizedTest
    @ValueSource(ints = {502, 504})
    void gatewayThatGivesUpLeavesTheOutcomeUnknown(int status) {
        alwaysGet(status(status));
        Orders orders = orders();
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignOutcomeUnknownException.class);
        assertEnd(UNKNOWN, 3);
    }

    /** "unless Idempotent-Replayed: true (stored: final)". */
    @ParameterizedTest
    @ValueSource(ints = {500, 502, 503, 504, 429})
    void storedErrorIsFinal(int status) {
        alwaysGet(status(status).withHeader("Idempotent-Replayed", "true"));
        Orders orders = orders();
        assertThatThrownBy(() -> orders.create("x"))
                .isNotInstanceOf(FeignOutcomeUnknownException.class)
                .isInstanceOfSatisfying(
                        FeignException.class, e -> assertThat(e.status()).isEqualTo(status));
        assertThat(received()).hasSize(1);
        assertEnd(FAILED, 1);
    }

    @Test
    void storedAnswerAfterALostOneIsAReplay() {
        attempt(1, aResponse().withFault(Fault.CONNECTION_RESET_BY_PEER));
        attempt(2, ok().withHeader("Idempotent-Replayed", "true"));
        assertThat(orders().create("x")).isEqualTo(OK);
        assertEnd(REPLAYED, 2);
    }

    /** Row "409 without the marker, other 4xx, 501, 505". */
    @ParameterizedTest
    @ValueSource(ints = {400, 401, 403, 404, 405, 409, 410, 412, 415, 422, 451, 501, 505})
    void answerOfTheOperationIsFinal(int status) {
        alwaysGet(status(status));
        Orders orders = orders();
        assertThatThrownBy(() -> orders.create("x"))
                .isNotInstanceOf(FeignOutcomeUnknownException.class)
                .isInstanceOfSatisfying(
                        FeignException.class, e -> assertThat(e.status()).isEqualTo(status));
        assertThat(received()).hasSize(1);
        assertEnd(FAILED, 1);
    }

    /** It settles what an earlier attempt left open. */
    @ParameterizedTest
    @ValueSource(ints = {402, 422})
    void answerOfTheOperationSettlesAnEarlierDoubt(int status) {
        attempt(1, aResponse().withFault(Fault.CONNECTION_RESET_BY_PEER));
        attempt(2, status(status));
        Orders orders = orders();
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignException.FeignClientException.class);
        assertEnd(FAILED, 2);
    }

    // ---- Retry-After

    static List<ResponseDefinitionBuilder> retryAfterThatCanBeObeyed() {
        String now = RetryAfterTable.date(ZonedDateTime.now(ZoneOffset.UTC));
        return List.of(
                status(503).withHeader("Retry-After", "0"),
                status(503).withHeader("Retry-After", "1"),
                status(503).withHeader("Retry-After", now),
                status(503).withHeader("Retry-After", "soon"),
                status(503).withHeader("Retry-After", "-1"),
                status(503).withHeader("Retry-After", ""),
                status(503).withHeader("Retry-After", "3600").withHeader("Retry-After-Ms", "5"),
                status(503).withHeader("Retry-After-Ms", "5"),
                status(503).withHeader("Retry-After-Ms", "fast").withHeader("Retry-After", "0"));
    }

    /** A server says how long to wait, in every form it can, and in some that say nothing. */
    @ParameterizedTest
    @MethodSource("retryAfterThatCanBeObeyed")
    void unavailableServerIsAskedAgainAfterTheTimeItNames(ResponseDefinitionBuilder unavailable) {
        attempt(1, unavailable);
        attempt(2, ok());
        // A client that repeats the request by itself gets the same answer again.
        assertThat(orders().create("x")).isEqualTo(OK);
        assertOneId();
        assertThat(attempts()).containsExactly("1", "2");
        assertEnd(SUCCEEDED, 2);
    }

    /** With everything that can stand beside it: with "try again", or with what says nothing. */
    @ParameterizedTest
    @MethodSource("io.idempotence.it.client.RetryAfterTable#soon")
    void everyStatusToTryAgainObeysTheTimeBesideIt(RetryAfterTable.Row row) {
        for (int status : RetryAfterTable.STATUSES) {
            provider.resetAll();
            everythingIsFine();
            events.clear();
            attempt(1, row.beside(status));
            assertThat(orders().create("x")).isEqualTo(OK);
            assertOneId();
            assertThat(attempts()).as("status %s", status).containsExactly("1", "2");
            assertEnd(SUCCEEDED, 2);
        }
    }

    /**
     * A time beyond the deadline, however absurd: the call ends, with the answer or with the doubt of a client that could not
     * read it.
     */
    @ParameterizedTest
    @MethodSource("io.idempotence.it.client.RetryAfterTable#tooLate")
    void everyStatusToTryAgainEndsTheCallWithATimeBeyondTheDeadlineBesideIt(RetryAfterTable.Row row) {
        for (int status : RetryAfterTable.STATUSES) {
            provider.resetAll();
            events.clear();
            alwaysGet(row.beside(status));
            Orders orders = orders();
            assertThatThrownBy(() -> orders.create("x"))
                    .isInstanceOfSatisfying(
                            FeignException.class, e -> assertThat(e.status()).isEqualTo(status));
            assertThat(attempts()).as("status %s", status).containsExactly("1");
            assertEnd(status == 502 || status == 504 ? UNKNOWN : FAILED, 1);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {408, 425, 429, 500, 502, 503, 504})
    void absurdNumberOfSecondsEndsTheCall(int status) {
        alwaysGet(status(status).withHeader("Retry-After", RetryAfterTable.ABSURD));
        Orders orders = orders();
        Throwable end = catchThrowable(() -> orders.create("x"));
        assertOneId();
        if (!readsAbsurdSecondsBeside(status)) {
            assertThat(end).isInstanceOf(FeignOutcomeUnknownException.class);
            assertEnd(UNKNOWN, received().size());
            return;
        }
        assertThat(received()).hasSize(1);
        if (status == 502 || status == 504) {
            assertThat(end).isInstanceOf(FeignOutcomeUnknownException.class);
            assertEnd(UNKNOWN, 1);
        } else {
            if (System.getProperty("idempotence.test.feign").startsWith("13.6.")) {
                // Its error decoder cannot read it.
                assertThat(end).isInstanceOf(NumberFormatException.class);
            } else {
                assertThat(end)
                        .isInstanceOfSatisfying(
                                FeignException.class,
                                e -> assertThat(e.status()).isEqualTo(status));
            }
            assertEnd(FAILED, 1);
        }
    }

    /** OkHttp does not where it looks whether to try again by itself: it throws, and nobody sees the answer. */
    boolean readsAbsurdSecondsBeside(int status) {
        return true;
    }

    @Test
    void serverIsNotAskedBeforeTheTimeItNames() {
        List<Long> arrivals = new CopyOnWriteArrayList<>();
        try (RawServer server = RawServer.start((request, client) -> {
            arrivals.add(System.nanoTime());
            String answer = request.header("Idempotency-Attempt").equals("1")
                    ? "HTTP/1.1 429 Slow\r\nRetry-After-Ms: 400\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                    : WHOLE;
            client.getOutputStream().write(answer.getBytes(StandardCharsets.ISO_8859_1));
        })) {
            assertThat(target(installed(fast()), server.url()).create("x")).isEqualTo("whole");
        }
        assertThat(arrivals).hasSize(2);
        assertThat(TimeUnit.NANOSECONDS.toMillis(arrivals.get(1) - arrivals.get(0)))
                .isGreaterThanOrEqualTo(400);
    }

    /** The server's time is a lower bound: what does not fit into the deadline is not tried. */
    @ParameterizedTest
    @CsvSource({"Retry-After,3600", "Retry-After,2147483647", "Retry-After-Ms,3600000", "Retry-After,date"})
    void retryAfterBeyondTheDeadlineEndsTheCall(String header, String value) {
        String text = value.equals("date")
                ? RetryAfterTable.date(ZonedDateTime.now(ZoneOffset.UTC).plusHours(1))
                : value;
        alwaysGet(status(503).withHeader(header, text));
        Orders orders = orders();
        assertThatThrownBy(() -> orders.create("x"))
                .isNotInstanceOf(FeignOutcomeUnknownException.class)
                .isInstanceOf(FeignException.class);
        assertThat(received()).hasSize(1);
        assertEnd(FAILED, 1);
    }

    @Test
    void oneSecondOfRetryAfterIsNotCutToTheWaitOfTheConfig() {
        alwaysGet(status(503).withHeader("Retry-After", "1"));
        Orders orders = orders(fast().deadline(Duration.ofMillis(900)));
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignException.class);
        assertThat(received()).hasSize(1);
    }

    // ---- refusals

    /** Row "other refusals": final, and typed whatever the return type is. */
    @ParameterizedTest
    @CsvSource({"key-missing,400", "key-invalid,400", "key-reused,422", "result-unavailable,409"})
    void refusalIsFinalAndTyped(String code, int status) {
        alwaysGet(refusal(code, status));
        Orders orders = orders();
        FeignRequestRefusedException refused =
                catchThrowableOfType(FeignRequestRefusedException.class, () -> orders.create("x"));
        assertThat(refused.refusal()).isEqualTo(Refusal.ofCode(code).orElseThrow());
        assertThat(refused.status()).isEqualTo(status);
        assertThat(refused.contentUTF8()).isEqualTo("{\"status\":" + status + "}");
        assertThat("\"" + refused.id().orElseThrow() + "\"").isEqualTo(ids().get(0));
        assertThat(received()).hasSize(1);
        assertEnd(REFUSED, 1);

        assertThatThrownBy(() -> orders.raw("x")).isInstanceOf(FeignRequestRefusedException.class);
        assertThat(received()).hasSize(2);
    }

    @Test
    void refusalOutcomeUnknownIsTheUnknownWithTheId() {
        alwaysGet(refusal("outcome-unknown", 409));
        Orders orders = orders();
        FeignOutcomeUnknownException unknown =
                catchThrowableOfType(FeignOutcomeUnknownException.class, () -> orders.create("x"));
        assertThat("\"" + unknown.id() + "\"").isEqualTo(ids().get(0));
        assertThat(unknown.status()).isEqualTo(409);
        assertThat(received()).hasSize(1);
        assertEnd(UNKNOWN, 1);
    }

    @ParameterizedTest
    @ValueSource(ints = {401, 403})
    void answerGivenBeforeTheIdWasLookedAtSettlesNothing(int status) {
        attempt(1, aResponse().withFault(Fault.CONNECTION_RESET_BY_PEER));
        attempt(2, status(status));
        Orders orders = orders();
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignOutcomeUnknownException.class);
        assertEnd(UNKNOWN, 2);
    }

    /** What keeps the next attempt from being sent says nothing about the one before. */
    @Test
    void interceptorThatFailsAfterALostAnswerLeavesTheOutcomeUnknown() {
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

    @Test
    void storageThatComesBackLetsTheCallSucceed() {
        attemptsUpTo(2, refusal("storage-unavailable", 503));
        assertThat(orders().create("x")).isEqualTo(OK);
        assertOneId();
        assertEnd(SUCCEEDED, 3);
    }

    @Test
    void storageThatStaysAwayIsTypedAtTheEnd() {
        alwaysGet(refusal("storage-unavailable", 503));
        Orders orders = orders();
        FeignRequestRefusedException refused =
                catchThrowableOfType(FeignRequestRefusedException.class, () -> orders.create("x"));
        assertThat(refused.refusal()).isEqualTo(Refusal.STORAGE_UNAVAILABLE);
        assertEnd(REFUSED, 3);
    }

    /** Row "in-progress": costs no attempt and no budget. */
    @Test
    void executionInProgressIsPolledAndCostsNoAttempt() {
        ResponseDefinitionBuilder inProgress = refusal("in-progress", 409).withHeader("Retry-After-Ms", "2");
        requestsGet(inProgress, inProgress, inProgress, inProgress, inProgress);
        IdempotenceClientConfig config = fast().maxAttempts(1).budget(5, 5, 0).build();
        Orders orders = target(install(feign(), config));
        assertThat(orders.create("x")).isEqualTo(OK);
        assertThat(received()).hasSize(6);
        assertOneId();
        assertThat(attempts()).containsExactly("1");
        assertThat(config.budget("orders").available()).isEqualTo(5);
        assertEnd(SUCCEEDED, 1);
    }

    /** Row "in-progress": costs the deadline. */
    @Test
    void executionInProgressForEverIsUnknownAtTheDeadline() {
        alwaysGet(refusal("in-progress", 409).withHeader("Retry-After-Ms", "20"));
        Orders orders = orders(fast().deadline(Duration.ofMillis(700)));
        FeignOutcomeUnknownException unknown =
                catchThrowableOfType(FeignOutcomeUnknownException.class, () -> orders.create("x"));
        assertThat(unknown.attempts()).isEqualTo(1);
        assertThat(received()).hasSizeGreaterThan(1);
        assertOneId();
        assertEnd(UNKNOWN, 1);
    }

    /** The server's clock is another one: a date that has passed means soon, and one that is far off does not outlast the deadline. */
    @Test
    void dateOfAWrongClockNeitherHurriesNorHoldsWhoAsksWhatIsInProgress() {
        requestsGet(refusal("in-progress", 409)
                .withHeader(
                        "Retry-After",
                        RetryAfterTable.date(ZonedDateTime.now(ZoneOffset.UTC).minusYears(1))));
        assertThat(orders().create("x")).isEqualTo(OK);
        assertEnd(SUCCEEDED, 1);

        events.clear();
        provider.resetRequests();
        alwaysGet(refusal("in-progress", 409)
                .withHeader(
                        "Retry-After",
                        RetryAfterTable.date(ZonedDateTime.now(ZoneOffset.UTC).withYear(9999))));
        Orders orders = orders();
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignOutcomeUnknownException.class);
        assertThat(received()).hasSize(1);
        assertEnd(UNKNOWN, 1);
    }

    @Test
    void businessAnswerAfterInProgressIsTheAnswer() {
        requestsGet(
                refusal("in-progress", 409).withHeader("Retry-After-Ms", "2"),
                status(422).withHeader("Idempotent-Replayed", "true"));
        Orders orders = orders();
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignException.UnprocessableEntity.class);
        assertThat(received()).hasSize(2);
        assertEnd(FAILED, 1);
    }

    // ---- what the layers above make of an answer

    /** Row "DecodeException"; but what Jackson throws is an IOException, of which Feign makes a plain exception. */
    @Test
    void answerThatCannotBeDecodedIsFinal() {
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

    /** UNWRAP throws causes, which have no status. */
    @Test
    void unwrappedExceptionsAreTriedAgainLikeTheOthers() {
        attempt(1, status(503).withHeader("Retry-After-Ms", "1"));
        attempt(2, aResponse().withFault(Fault.CONNECTION_RESET_BY_PEER));
        Orders orders = orders(builder -> builder.exceptionPropagationPolicy(ExceptionPropagationPolicy.UNWRAP));
        assertThat(orders.create("x")).isEqualTo(OK);
        assertOneId();
        assertEnd(SUCCEEDED, 3);
    }

    @Test
    void unwrappedOrNotTheUnknownIsTyped() {
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
        attempt(1, status(503));
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
    void rawResponseIsTriedAgainAndTheLastOneIsTheCallers() throws IOException {
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
    void rawResponseOfALostAnswerIsUnknown() {
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

    /** While a request is out, whether or not its client notices. */
    @Test
    void callerInterruptedWhileARequestIsOutMakesNoFurtherAttemptAndKeepsItsFlag() throws InterruptedException {
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
            if (interruptedCallersWaitForTheAnswer()) {
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

    /** Or may: of who does not, an answer in the meantime could find the call still going on. */
    boolean interruptedCallersWaitForTheAnswer() {
        return true;
    }

    @Test
    void emptyBudgetEndsTheRetries() {
        alwaysGet(status(500));
        IdempotenceClientConfig config = fast().maxAttempts(9).budget(10, 5, 1).build();
        Orders orders = target(install(feign(), config));
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignException.InternalServerError.class);
        assertThat(received()).hasSize(3);
        assertThat(config.budget("orders").available()).isZero();
    }

    /** It is the target's, not the client's. */
    @Test
    void budgetIsSharedByTheClientsOfATarget() {
        alwaysGet(status(500));
        IdempotenceClientConfig config = fast().maxAttempts(9).budget(10, 5, 1).build();
        Orders one = target(install(feign(), config));
        Orders other = target(install(feign(), config));
        assertThatThrownBy(() -> one.create("x")).isInstanceOf(FeignException.InternalServerError.class);
        assertThatThrownBy(() -> other.create("x")).isInstanceOf(FeignException.InternalServerError.class);
        assertThat(received()).hasSize(4);
    }

    @Test
    void attemptThatHangsEndsAtTheDeadlineHoweverLongItsOwnTimeout() {
        alwaysGet(ok().withFixedDelay(2_000));
        Orders orders =
                orders(fast().deadline(Duration.ofMillis(400)), builder -> builder.options(readTimeout(60_000)));
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignOutcomeUnknownException.class);
        assertEnd(UNKNOWN, 1);
    }

    private BaseBuilder<?, ?> installed(IdempotenceClientConfig.Builder config) {
        return install(feign(), config.build());
    }

    private static String text(Response response) throws IOException {
        return new String(response.body().asInputStream().readAllBytes(), StandardCharsets.UTF_8);
    }
}
