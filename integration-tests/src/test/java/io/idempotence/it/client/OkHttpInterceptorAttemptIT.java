package io.idempotence.it.client;

import static com.github.tomakehurst.wiremock.client.WireMock.aResponse;
import static io.idempotence.client.IdempotenceClientEvent.Result.FAILED;
import static io.idempotence.client.IdempotenceClientEvent.Result.REFUSED;
import static io.idempotence.client.IdempotenceClientEvent.Result.REPLAYED;
import static io.idempotence.client.IdempotenceClientEvent.Result.SUCCEEDED;
import static io.idempotence.client.IdempotenceClientEvent.Result.UNKNOWN;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.github.tomakehurst.wiremock.client.ResponseDefinitionBuilder;
import com.github.tomakehurst.wiremock.http.Fault;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.metrics.IdempotenceClientMetrics;
import io.idempotence.client.okhttp.IdempotentOkHttp;
import io.idempotence.client.okhttp.OkHttpOutcomeUnknownException;
import io.idempotence.client.okhttp.OkHttpRequestRefusedException;
import io.idempotence.http.Refusal;
import io.idempotence.it.wire.FullBacklog;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import javax.net.ssl.SSLException;
import okhttp3.MediaType;
import okhttp3.OkHttpClient;
import okhttp3.RequestBody;
import okhttp3.Response;
import okio.BufferedSink;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * What OkHttp without Feign makes of everything that can happen to an attempt: the table "What happened to an attempt" in the
 * client design.
 */
class OkHttpInterceptorAttemptIT extends OkHttpInterceptorTestBase {

    // ---- no connection

    @Test
    void refusedConnectionIsTriedAgainAndNothingIsUnknown() {
        String nobody = nobody();
        OkHttpClient client = installed();
        assertThatThrownBy(() -> send(client, to(nobody))).isExactlyInstanceOf(ConnectException.class);
        assertEnd(FAILED, 3);
    }

    @Test
    void connectTimeoutIsCutToWhatIsLeftOfTheDeadline() throws IOException {
        try (FullBacklog full = new FullBacklog()) {
            OkHttpClient client = built(IdempotentOkHttp.install(
                    plain().connectTimeout(Duration.ofMinutes(1)),
                    fast().deadline(Duration.ofMillis(300)).build(),
                    "orders"));
            long start = System.nanoTime();
            assertThatThrownBy(() -> send(client, to(full.url()))).isInstanceOf(SocketTimeoutException.class);
            assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(Duration.ofSeconds(20));
            assertEnd(FAILED, 1);
        }
    }

    @Test
    void certificateThatIsNotTrustedIsFinal() {
        OkHttpClient client = installed();
        assertThatThrownBy(() -> send(client, to("https://127.0.0.1:" + provider.httpsPort())))
                .isInstanceOf(SSLException.class);
        assertEnd(FAILED, 1);
        assertThat(received()).isEmpty();
    }

    // ---- sent, and no answer

    @Test
    void answerLaterThanTheReadTimeoutIsAskedForAgain() throws IOException {
        attempt(1, ok().withFixedDelay(20_000));
        // On a busy machine later answers may be late as well.
        OkHttpClient client = installed(fast().maxAttempts(50), builder -> builder.readTimeout(Duration.ofMillis(500)));
        assertThat(ok(client, order())).isEqualTo(OK);
        assertOneId();
        assertThat(attempts()).startsWith("1", "2");
        assertThat(events.get(0).result()).isEqualTo(SUCCEEDED);
    }

    @ParameterizedTest
    @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "MALFORMED_RESPONSE_CHUNK")
    void lostAnswerIsAskedForAgainWithTheSameId(Fault fault) throws IOException {
        attemptsUpTo(2, aResponse().withFault(fault));
        assertThat(ok(installed(), order())).isEqualTo(OK);
        assertOneId();
        assertThat(attempts()).containsExactly("1", "2", "3");
        assertEnd(SUCCEEDED, 3);
    }

    @ParameterizedTest
    @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "MALFORMED_RESPONSE_CHUNK")
    void answerThatIsAlwaysLostIsUnknownAndTheExceptionCarriesTheId(Fault fault) {
        alwaysGet(aResponse().withFault(fault));
        OkHttpClient client = installed();
        OkHttpOutcomeUnknownException unknown =
                catchThrowableOfType(OkHttpOutcomeUnknownException.class, () -> send(client, order()));
        assertThat(unknown.attempts()).isEqualTo(3);
        assertThat(unknown.lastCause()).isInstanceOf(IOException.class);
        assertThat(ids()).isNotEmpty().allMatch(id -> id.equals("\"" + unknown.id() + "\""));
        assertEnd(UNKNOWN, 3);
    }

    /** The caller reads it, after the call: nothing of ours can try again by then. */
    @Test
    void bodyThatBreaksOffIsSeenByTheCaller() throws IOException {
        alwaysGet(aResponse().withFault(Fault.MALFORMED_RESPONSE_CHUNK));
        try (Response response = send(installed(), order())) {
            assertThat(response.code()).isEqualTo(200);
            assertThatThrownBy(() -> response.body().string()).isInstanceOf(IOException.class);
        }
        assertThat(attempts()).containsExactly("1");
    }

    /** A connection that broke is replaced by OkHttp itself; the event counts what OkHttp was given. */
    @Test
    void requestThatOkHttpRepeatsByItselfCarriesTheSameIdAndIsNoneOfOurs() throws IOException {
        OkHttpClient client = installed();
        ok(client, order());
        provider.resetRequests();
        events.clear();
        attempt(1, aResponse().withFault(Fault.EMPTY_RESPONSE));
        assertThat(ok(client, order())).isEqualTo(OK);
        assertOneId();
        assertThat(received()).hasSizeGreaterThan(2);
        assertThat(attempts()).containsExactly("1", "2");
        assertThat(events.get(0).requests()).isEqualTo(2);
    }

    /** The first of two requests of one attempt may have been carried out; a login's answer to the second does not settle that. */
    @Test
    void requestThatOkHttpRepeatsByItselfLeavesItsDoubt() throws IOException {
        OkHttpClient client = installed();
        ok(client, order());
        requestsGet(aResponse().withFault(Fault.EMPTY_RESPONSE), status(401));
        assertThatThrownBy(() -> send(client, order())).isInstanceOf(OkHttpOutcomeUnknownException.class);
        assertThat(attempts()).containsExactly("1");
        assertThat(received()).hasSize(3);
    }

    // ---- statuses

    @ParameterizedTest
    @ValueSource(ints = {408, 425, 429, 500, 502, 503, 504})
    void statusThatMayBeAnotherNextTimeIsTriedAgain(int status) throws IOException {
        attemptsUpTo(2, status(status));
        assertThat(ok(installed(), order())).isEqualTo(OK);
        assertOneId();
        assertThat(attempts()).containsExactly("1", "2", "3");
        assertEnd(SUCCEEDED, 3);
    }

    /** As OkHttp does: an error status is an answer. */
    @ParameterizedTest
    @ValueSource(ints = {408, 425, 429, 500, 503})
    void statusThatStaysIsTheAnswer(int status) throws IOException {
        alwaysGet(status(status));
        try (Response response = send(installed(), order())) {
            assertThat(response.code()).isEqualTo(status);
            assertThat(response.body().string()).isEqualTo("status " + status);
        }
        assertThat(attempts()).containsExactly("1", "2", "3");
    }

    @ParameterizedTest
    @ValueSource(ints = {502, 504})
    void gatewayThatGivesUpLeavesTheOutcomeUnknown(int status) {
        alwaysGet(status(status));
        OkHttpClient client = installed();
        assertThatThrownBy(() -> send(client, order())).isInstanceOf(OkHttpOutcomeUnknownException.class);
        assertEnd(UNKNOWN, 3);
        assertNothingIsHeld(client);
    }

    @ParameterizedTest
    @ValueSource(ints = {500, 502, 503, 504, 429})
    void storedErrorIsFinal(int status) throws IOException {
        alwaysGet(status(status).withHeader("Idempotent-Replayed", "true"));
        assertThat(status(installed(), order())).isEqualTo(status);
        assertThat(received()).hasSize(1);
        assertEnd(REPLAYED, 1);
    }

    @ParameterizedTest
    @ValueSource(ints = {400, 401, 403, 404, 409, 412, 422, 501})
    void answerOfTheOperationIsFinal(int status) throws IOException {
        alwaysGet(status(status));
        assertThat(status(installed(), order())).isEqualTo(status);
        assertThat(received()).hasSize(1);
    }

    @Test
    void answerOfTheOperationSettlesAnEarlierDoubtAndALoginsDoesNot() throws IOException {
        attempt(1, aResponse().withFault(Fault.CONNECTION_RESET_BY_PEER));
        attempt(2, status(422));
        OkHttpClient client = installed();
        assertThat(status(client, order())).isEqualTo(422);
        attempt(2, status(401));
        assertThatThrownBy(() -> send(client, order())).isInstanceOf(OkHttpOutcomeUnknownException.class);
    }

    // ---- Retry-After

    @ParameterizedTest
    @CsvSource({"Retry-After,1", "Retry-After,soon", "Retry-After,-1", "Retry-After-Ms,5"})
    void unavailableServerIsAskedAgainAfterTheTimeItNames(String header, String value) throws IOException {
        attempt(1, status(503).withHeader(header, value));
        assertThat(ok(installed(), order())).isEqualTo(OK);
        assertOneId();
        assertThat(received()).hasSize(2);
    }

    /**
     * OkHttp sends a 408 again by itself unless it is told to wait, a 503 only if it is told not to: once, and nothing but digits
     * tells it.
     */
    private static boolean isRepeatedByOkHttp(int status, RetryAfterTable.Row row) {
        boolean seconds = row.header().equals("Retry-After");
        return status == 408 && !seconds
                || (status == 408 || status == 503) && seconds && row.value().equals("0");
    }

    /** What OkHttp sends again by itself has the same ID and is part of the attempt. */
    @ParameterizedTest
    @MethodSource("io.idempotence.it.client.RetryAfterTable#soon")
    void everyStatusToTryAgainObeysTheTimeBesideIt(RetryAfterTable.Row row) throws IOException {
        OkHttpClient client = installed();
        for (int status : RetryAfterTable.STATUSES) {
            provider.resetAll();
            everythingIsFine();
            events.clear();
            attempt(1, row.beside(status));
            assertThat(ok(client, order())).isEqualTo(OK);
            assertOneId();
            assertThat(received().stream().map(request -> header(request, "Idempotency-Attempt")))
                    .as("status %s", status)
                    .containsExactlyElementsOf(
                            isRepeatedByOkHttp(status, row) ? List.of("1", "1", "2") : List.of("1", "2"));
            assertEnd(SUCCEEDED, 2);
            assertThat(events.get(0).requests()).isEqualTo(2);
        }
    }

    @ParameterizedTest
    @MethodSource("io.idempotence.it.client.RetryAfterTable#tooLate")
    void everyStatusToTryAgainEndsTheCallWithATimeBeyondTheDeadlineBesideIt(RetryAfterTable.Row row)
            throws IOException {
        OkHttpClient client = installed();
        for (int status : RetryAfterTable.STATUSES) {
            provider.resetAll();
            events.clear();
            alwaysGet(row.beside(status));
            assertAnswerOrUnknown(client, status);
            assertOneId();
            assertThat(attempts()).as("status %s", status).containsExactly("1");
            assertThat(received()).hasSize(isRepeatedByOkHttp(status, row) ? 2 : 1);
        }
        assertNothingIsHeld(client);
    }

    /** OkHttp throws where it looks whether to try again by itself, after the request may have been carried out. */
    @ParameterizedTest
    @ValueSource(ints = {408, 425, 429, 500, 502, 503, 504})
    void absurdNumberOfSecondsEndsTheCall(int status) throws IOException {
        alwaysGet(status(status).withHeader("Retry-After", RetryAfterTable.ABSURD));
        OkHttpClient client = installed();
        if (status == 408 || status == 503) {
            assertThatThrownBy(() -> send(client, order()))
                    .isInstanceOf(OkHttpOutcomeUnknownException.class)
                    .hasCauseInstanceOf(NumberFormatException.class);
            assertEnd(UNKNOWN, 1);
        } else {
            assertAnswerOrUnknown(client, status);
        }
        assertThat(received()).hasSize(1);
    }

    /** The answer after one attempt, unless a gateway gave it. */
    private void assertAnswerOrUnknown(OkHttpClient client, int status) throws IOException {
        if (status == 502 || status == 504) {
            assertThatThrownBy(() -> send(client, order())).isInstanceOf(OkHttpOutcomeUnknownException.class);
            assertEnd(UNKNOWN, 1);
        } else {
            assertThat(status(client, order())).isEqualTo(status);
            assertEnd(FAILED, 1);
        }
    }

    /** OkHttp repeats such a request once by itself; with our ID that is safe, and it is no attempt of ours. */
    @Test
    void retryAfterZeroThatOkHttpObeysByItselfIsPartOfTheAttempt() throws IOException {
        attempt(1, status(503).withHeader("Retry-After", "0"));
        assertThat(ok(installed(), order())).isEqualTo(OK);
        assertOneId();
        assertThat(received().stream().map(request -> header(request, "Idempotency-Attempt")))
                .containsExactly("1", "1", "2");
        assertEnd(SUCCEEDED, 2);
        assertThat(events.get(0).requests()).isEqualTo(2);
    }

    /** What OkHttp repeats by itself is none. */
    @Test
    void pollsAndTheTimeWaitedForAnEarlierAttemptAreMeasured() throws IOException {
        MeterRegistry meters = new SimpleMeterRegistry();
        requestsGet(
                status(503).withHeader("Retry-After", "0"),
                refusal("in-progress", 409).withHeader("Retry-After-Ms", "20"));
        assertThat(ok(installed(fast().listener(IdempotenceClientMetrics.of(meters))), order()))
                .isEqualTo(OK);
        assertThat(received()).hasSize(3);
        assertThat(meters.get(IdempotenceClientMetrics.POLLS)
                        .tag("client", "orders")
                        .counter()
                        .count())
                .isEqualTo(1);
        Timer waited = meters.get(IdempotenceClientMetrics.WAITED)
                .tag("client", "orders")
                .timer();
        assertThat(waited.count()).isEqualTo(1);
        assertThat(waited.totalTime(TimeUnit.MILLISECONDS)).isGreaterThanOrEqualTo(20);
    }

    /** Nothing is known of a request that was answered and then could not be sent again. */
    @Test
    void requestThatOkHttpSentBeforeIsNotTakenForNotSent() throws IOException {
        AtomicInteger lookups = new AtomicInteger();
        requestsGet(status(503).withHeader("Retry-After", "0").withHeader("Connection", "close"));
        OkHttpClient client = built(IdempotentOkHttp.install(
                plain().dns(host -> {
                    if (lookups.incrementAndGet() > 1) {
                        throw new java.net.UnknownHostException("gone");
                    }
                    return List.of(InetAddress.getLoopbackAddress());
                }),
                fast().build(),
                "orders"));
        assertThatThrownBy(() -> send(client, to("http://orders.test:" + provider.port() + "/")))
                .isInstanceOf(OkHttpOutcomeUnknownException.class);
        assertEnd(UNKNOWN, 3);
        assertThat(received()).hasSize(1);
    }

    // ---- refusals

    @ParameterizedTest
    @CsvSource({"key-missing,400", "key-invalid,400", "key-reused,422", "result-unavailable,409"})
    void refusalIsFinalAndTyped(String code, int status) {
        alwaysGet(refusal(code, status));
        OkHttpClient client = installed();
        OkHttpRequestRefusedException refused =
                catchThrowableOfType(OkHttpRequestRefusedException.class, () -> send(client, order()));
        assertThat(refused.refusal()).isEqualTo(Refusal.ofCode(code).orElseThrow());
        assertThat("\"" + refused.id().orElseThrow() + "\"").isEqualTo(ids().get(0));
        assertThat(received()).hasSize(1);
        assertEnd(REFUSED, 1);
        assertNothingIsHeld(client);
    }

    @Test
    void refusalOutcomeUnknownIsTheUnknownWithTheId() {
        alwaysGet(refusal("outcome-unknown", 409));
        OkHttpClient client = installed();
        OkHttpOutcomeUnknownException unknown =
                catchThrowableOfType(OkHttpOutcomeUnknownException.class, () -> send(client, order()));
        assertThat("\"" + unknown.id() + "\"").isEqualTo(ids().get(0));
        assertThat(received()).hasSize(1);
        assertEnd(UNKNOWN, 1);
    }

    @Test
    void storageThatStaysAwayIsTypedAtTheEnd() {
        alwaysGet(refusal("storage-unavailable", 503));
        OkHttpClient client = installed();
        OkHttpRequestRefusedException refused =
                catchThrowableOfType(OkHttpRequestRefusedException.class, () -> send(client, order()));
        assertThat(refused.refusal()).isEqualTo(Refusal.STORAGE_UNAVAILABLE);
        assertEnd(REFUSED, 3);
    }

    @Test
    void executionInProgressIsPolledAndCostsNoAttempt() throws IOException {
        ResponseDefinitionBuilder inProgress = refusal("in-progress", 409).withHeader("Retry-After-Ms", "2");
        requestsGet(inProgress, inProgress, inProgress, inProgress, inProgress);
        IdempotenceClientConfig config = fast().maxAttempts(1).budget(5, 5, 0).build();
        OkHttpClient client = built(IdempotentOkHttp.install(plain(), config, "orders"));
        assertThat(ok(client, order())).isEqualTo(OK);
        assertThat(received()).hasSize(6);
        assertOneId();
        assertThat(attempts()).containsExactly("1");
        assertThat(config.budget("orders").available()).isEqualTo(5);
        assertEnd(SUCCEEDED, 1);
        assertNothingIsHeld(client);
    }

    @Test
    void executionInProgressForEverIsUnknownAtTheDeadline() {
        alwaysGet(refusal("in-progress", 409).withHeader("Retry-After-Ms", "20"));
        OkHttpClient client = installed(fast().deadline(Duration.ofMillis(700)));
        assertThatThrownBy(() -> send(client, order())).isInstanceOf(OkHttpOutcomeUnknownException.class);
        assertThat(received()).hasSizeGreaterThan(1);
        assertOneId();
        assertEnd(UNKNOWN, 1);
    }

    /** Held for as long as this side listens, and no longer. */
    @Test
    void serverIsAskedToHoldADuplicateNoLongerThanTheReadTimeout() throws IOException {
        OkHttpClient patient =
                built(IdempotentOkHttp.install(plain().readTimeout(Duration.ofMillis(3_600)), fast().build()));
        ok(patient, order());
        ok(patient, order().header("Prefer", "wait=1"));
        ok(installed(fast(), builder -> builder.readTimeout(Duration.ofMillis(1_400))), order());
        ok(patient, order().get());
        assertThat(received().stream().map(request -> header(request, "Prefer")))
                .containsExactly("wait=3", "wait=1", "", "");
    }

    // ---- limits

    @Test
    void emptyBudgetEndsTheRetries() throws IOException {
        alwaysGet(status(500));
        IdempotenceClientConfig config = fast().maxAttempts(9).budget(10, 5, 1).build();
        OkHttpClient client = built(IdempotentOkHttp.install(plain(), config, "orders"));
        assertThat(status(client, order())).isEqualTo(500);
        assertThat(received()).hasSize(3);
        assertThat(config.budget("orders").available()).isZero();
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 60_000})
    void attemptThatHangsEndsAtTheDeadlineHoweverLongItsOwnTimeout(int readTimeoutMillis) {
        alwaysGet(ok().withFixedDelay(2_000));
        OkHttpClient client = built(IdempotentOkHttp.install(
                plain().readTimeout(Duration.ofMillis(readTimeoutMillis)),
                fast().deadline(Duration.ofMillis(400)).build()));
        assertThatThrownBy(() -> send(client, order()))
                .isInstanceOf(OkHttpOutcomeUnknownException.class)
                .hasCauseInstanceOf(SocketTimeoutException.class);
        assertEnd(UNKNOWN, 1);
    }

    // ---- bodies

    /** A body with something in it that differs each time it is written. */
    private static RequestBody changing(AtomicInteger writes, int size, boolean oneShot) {
        return new RequestBody() {
            @Override
            public MediaType contentType() {
                return TEXT;
            }

            @Override
            public void writeTo(BufferedSink sink) throws IOException {
                sink.writeUtf8("written " + writes.incrementAndGet() + " times");
                sink.writeUtf8(".".repeat(size));
            }

            @Override
            public boolean isOneShot() {
                return oneShot;
            }
        };
    }

    @Test
    void bodyIsWrittenOnceAndRepeatedByteByByte() throws IOException {
        attempt(1, aResponse().withFault(Fault.CONNECTION_RESET_BY_PEER));
        attempt(2, status(503).withHeader("Retry-After", "0"));
        AtomicInteger writes = new AtomicInteger();
        assertThat(ok(installed(), order().post(changing(writes, 0, false)))).isEqualTo(OK);
        assertThat(bodies()).hasSize(4).containsOnly("written 1 times");
        assertThat(received())
                .allMatch(request -> header(request, "Content-Type").startsWith("text/plain"));
    }

    @Test
    void bodyThatCannotBeWrittenIsTheCallersOwnException() {
        OkHttpClient client = installed();
        RequestBody broken = new RequestBody() {
            @Override
            public MediaType contentType() {
                return TEXT;
            }

            @Override
            public void writeTo(BufferedSink sink) throws IOException {
                throw new IOException("the file is gone");
            }
        };
        assertThatThrownBy(() -> send(client, order().post(broken)))
                .isExactlyInstanceOf(IOException.class)
                .hasMessage("the file is gone");
        assertThat(received()).isEmpty();
        assertEnd(FAILED, 1);
    }

    @Test
    void bodyThatCanBeReadOnlyOnceIsNotSentAgain() throws IOException {
        AtomicInteger writes = new AtomicInteger();
        OkHttpClient client = installed();
        alwaysGet(status(503));
        assertThat(status(client, order().post(changing(writes, 0, true)))).isEqualTo(503);
        alwaysGet(aResponse().withFault(Fault.CONNECTION_RESET_BY_PEER));
        assertThatThrownBy(() -> send(client, order().post(changing(writes, 0, true))))
                .isInstanceOf(OkHttpOutcomeUnknownException.class);
        alwaysGet(refusal("in-progress", 409).withHeader("Retry-After-Ms", "1"));
        assertThatThrownBy(() -> send(client, order().post(changing(writes, 0, true))))
                .isInstanceOf(OkHttpOutcomeUnknownException.class);
        assertThat(received()).hasSize(3);
        assertThat(writes).hasValue(3);
        assertThat(events).hasSize(3).allMatch(event -> event.attempts() == 1);
        assertNothingIsHeld(client);
    }

    @Test
    void bodyThatCanBeReadOnlyOnceAndWasNotIsSentAgain() throws IOException {
        AtomicInteger writes = new AtomicInteger();
        String nobody = nobody();
        OkHttpClient client = installed();
        assertThatThrownBy(() -> send(client, to(nobody).post(changing(writes, 0, true))))
                .isExactlyInstanceOf(ConnectException.class);
        assertEnd(FAILED, 3);
        assertThat(writes).hasValue(0);
    }

    /** An answer that is not closed holds its connection. */
    private static void assertNothingIsHeld(OkHttpClient client) {
        assertThat(client.connectionPool().idleConnectionCount())
                .isEqualTo(client.connectionPool().connectionCount());
    }
}
