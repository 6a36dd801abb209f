package io.idempotence.it.client;

import static com.github.tomakehurst.wiremock.client.WireMock.aResponse;
import static io.idempotence.client.IdempotenceClientEvent.Result.FAILED;
import static io.idempotence.client.IdempotenceClientEvent.Result.REFUSED;
import static io.idempotence.client.IdempotenceClientEvent.Result.REPLAYED;
import static io.idempotence.client.IdempotenceClientEvent.Result.SUCCEEDED;
import static io.idempotence.client.IdempotenceClientEvent.Result.UNKNOWN;
import static org.assertj.core.api.Assertions.assertThat;

import com.github.tomakehurst.wiremock.client.ResponseDefinitionBuilder;
import com.github.tomakehurst.wiremock.http.Fault;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceClientConfigBuilder;
import io.idempotence.client.IdempotenceClientEvent.Result;
import io.idempotence.client.OutcomeUnknown;
import io.idempotence.client.RequestRefused;
import io.idempotence.http.Refusal;
import io.idempotence.it.client.ClientUnderTest.End;
import io.idempotence.it.wire.RawServer;
import java.io.IOException;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowingConsumer;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The treatment of responses by the client half: their status, their Retry-After, and refusals. Subclasses choose the client. */
abstract class ResponseContract extends WireMockTestBase {
    static final String WHOLE = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nwhole";

    static final Duration TWENTY_SECONDS = Duration.ofSeconds(20);

    /** @param connect a timeout, as is {@code read} */
    abstract ClientUnderTest client(IdempotenceClientConfig config, String url, Duration connect, Duration read);

    /** What callers catch if nothing was sent. */
    abstract Class<? extends Throwable> failureToSend();

    /** What ends a connection that is not established in time. */
    Class<? extends Throwable> connectTimeout() {
        return SocketTimeoutException.class;
    }

    /** A caller who gets a stored error as a response has got it; to others it is a failure. */
    abstract Result endOfAStoredError();

    final ClientUnderTest client() {
        return client(fast());
    }

    final ClientUnderTest client(IdempotenceClientConfigBuilder config) {
        return client(config, "http://127.0.0.1:" + provider.port());
    }

    final ClientUnderTest client(IdempotenceClientConfigBuilder config, String url) {
        return client(config.build(), url, TWENTY_SECONDS, TWENTY_SECONDS);
    }

    ClientUnderTest client(IdempotenceClientConfig config) {
        return client(config, "http://127.0.0.1:" + provider.port(), TWENTY_SECONDS, TWENTY_SECONDS);
    }

    static void write(Socket socket, String response) throws IOException {
        socket.getOutputStream().write(response.getBytes(StandardCharsets.ISO_8859_1));
    }

    static void assertOk(End end) {
        assertText(end, OK);
    }

    static void assertText(End end, String text) {
        assertThat(end).isEqualTo(new End(200, text, null));
    }

    static void assertStatus(End end, int status) {
        assertThat(end.status()).as("%s", end).isEqualTo(status);
    }

    static OutcomeUnknown assertUnknown(End end) {
        assertThat(end.thrown()).as("%s", end).isInstanceOf(OutcomeUnknown.class);
        return (OutcomeUnknown) end.thrown();
    }

    static RequestRefused assertRefused(End end, Refusal refusal) {
        assertThat(end.thrown()).as("%s", end).isInstanceOf(RequestRefused.class);
        RequestRefused refused = (RequestRefused) end.thrown();
        assertThat(refused.refusal()).isEqualTo(refusal);
        return refused;
    }

    void assertNotSent(End end) {
        assertThat(end.thrown()).isInstanceOf(failureToSend()).isNotInstanceOf(OutcomeUnknown.class);
    }

    static ThrowingConsumer<Throwable> causedBy(Class<? extends Throwable> cause) {
        return thrown -> assertThat(Stream.iterate(thrown, Objects::nonNull, Throwable::getCause))
                .hasAtLeastOneElementOfType(cause);
    }

    // ---- statuses

    @ParameterizedTest
    @ValueSource(ints = {408, 425, 429, 500, 502, 503, 504})
    void retryableStatusIsRetried(int status) {
        attemptsUpTo(2, status(status));
        assertOk(client().order());
        assertOneId();
        assertThat(attempts()).containsExactly("1", "2", "3");
        assertEnd(SUCCEEDED, 3);
    }

    /** At the end of the attempts nothing is in doubt, so it is what everybody knows. */
    @ParameterizedTest
    @ValueSource(ints = {408, 425, 429, 500, 503})
    void statusThatStaysIsTheResponse(int status) {
        alwaysGet(status(status));
        End end = client().order();
        assertStatus(end, status);
        assertThat(end.body()).isEqualTo("status " + status);
        assertThat(attempts()).containsExactly("1", "2", "3");
        assertEnd(FAILED, 3);
    }

    /** A gateway that gave up cannot tell what became of the request behind it. */
    @ParameterizedTest
    @ValueSource(ints = {502, 504})
    void gatewayThatGivesUpLeavesTheOutcomeUnknown(int status) {
        alwaysGet(status(status));
        assertUnknown(client().order());
        assertEnd(UNKNOWN, 3);
    }

    @ParameterizedTest
    @ValueSource(ints = {500, 502, 503, 504, 429})
    void storedErrorIsFinal(int status) {
        alwaysGet(status(status).withHeader("Idempotent-Replayed", "true"));
        assertStatus(client().order(), status);
        assertThat(received()).hasSize(1);
        assertEnd(endOfAStoredError(), 1);
    }

    @Test
    void storedResponseAfterALostOneIsAReplay() {
        attempt(1, aResponse().withFault(Fault.CONNECTION_RESET_BY_PEER));
        attempt(2, ok().withHeader("Idempotent-Replayed", "true"));
        assertOk(client().order());
        assertEnd(REPLAYED, 2);
    }

    @ParameterizedTest
    @ValueSource(ints = {400, 401, 403, 404, 405, 409, 410, 412, 415, 422, 451, 501, 505})
    void responseOfTheOperationIsFinal(int status) {
        alwaysGet(status(status));
        assertStatus(client().order(), status);
        assertThat(received()).hasSize(1);
        assertEnd(FAILED, 1);
    }

    /** It settles what an earlier attempt left open. */
    @ParameterizedTest
    @ValueSource(ints = {402, 422})
    void responseOfTheOperationSettlesAnEarlierDoubt(int status) {
        attempt(1, aResponse().withFault(Fault.CONNECTION_RESET_BY_PEER));
        attempt(2, status(status));
        assertStatus(client().order(), status);
        assertEnd(FAILED, 2);
    }

    @ParameterizedTest
    @ValueSource(ints = {401, 403})
    void responseGivenBeforeTheIdWasLookedAtSettlesNothing(int status) {
        attempt(1, aResponse().withFault(Fault.CONNECTION_RESET_BY_PEER));
        attempt(2, status(status));
        assertUnknown(client().order());
        assertEnd(UNKNOWN, 2);
    }

    // ---- Retry-After

    @ParameterizedTest
    @MethodSource("io.idempotence.it.client.RetryAfterTable#soon")
    void statusToRetryObeysTheTimeBesideIt(RetryAfterTable.Row row) {
        assertObeyed(row, RetryAfterTable.SOME_STATUSES);
    }

    @ParameterizedTest
    @MethodSource("io.idempotence.it.client.RetryAfterTable#soon")
    @Tag("all") // OkHttpInterceptorAttemptIT always has every status with every time
    void everyStatusToRetryObeysTheTimeBesideIt(RetryAfterTable.Row row) {
        assertObeyed(row, RetryAfterTable.STATUSES);
    }

    private void assertObeyed(RetryAfterTable.Row row, List<Integer> statuses) {
        for (int status : statuses) {
            provider.resetAll();
            everythingIsFine();
            events.clear();
            attempt(1, row.beside(status));
            assertOk(client().order());
            assertOneId();
            assertThat(attempts()).as("status %s", status).containsExactly("1", "2");
            assertEnd(SUCCEEDED, 2);
        }
    }

    /** However absurd: the call ends, with the response or with the doubt that a gateway leaves. */
    @ParameterizedTest
    @MethodSource("io.idempotence.it.client.RetryAfterTable#tooLate")
    void statusToRetryEndsTheCallWithATimeBeyondTheDeadlineBesideIt(RetryAfterTable.Row row) {
        assertEndsTheCall(row, RetryAfterTable.SOME_STATUSES);
    }

    @ParameterizedTest
    @MethodSource("io.idempotence.it.client.RetryAfterTable#tooLate")
    @Tag("all") // the test below always has every status with one such time
    void everyStatusToRetryEndsTheCallWithATimeBeyondTheDeadlineBesideIt(RetryAfterTable.Row row) {
        assertEndsTheCall(row, RetryAfterTable.STATUSES);
    }

    private void assertEndsTheCall(RetryAfterTable.Row row, List<Integer> statuses) {
        for (int status : statuses) {
            provider.resetAll();
            events.clear();
            alwaysGet(row.beside(status));
            End end = client().order();
            assertThat(attempts()).as("status %s", status).containsExactly("1");
            assertOneId();
            if (status == 502 || status == 504) {
                assertUnknown(end);
                assertEnd(UNKNOWN, 1);
            } else {
                assertStatus(end, status);
                assertEnd(FAILED, 1);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {408, 425, 429, 500, 502, 503, 504})
    void absurdNumberOfSecondsEndsTheCall(int status) {
        alwaysGet(status(status).withHeader("Retry-After", RetryAfterTable.ABSURD));
        End end = client().order();
        assertOneId();
        if (!readsAbsurdSecondsBeside(status)) {
            assertThat(assertUnknown(end).lastCause()).hasStackTraceContaining("NumberFormatException");
            assertEnd(UNKNOWN, received().size());
            return;
        }
        assertThat(received()).hasSize(1);
        if (status == 502 || status == 504) {
            assertUnknown(end);
            assertEnd(UNKNOWN, 1);
        } else {
            if (end.thrown() instanceof NumberFormatException) {
                // The error decoder of that Feign cannot read it.
                assertThat(System.getProperty("idempotence.test.feign")).startsWith("13.6.");
            } else {
                assertStatus(end, status);
            }
            assertEnd(FAILED, 1);
        }
    }

    /** OkHttp does not where it looks whether to try again by itself: it throws, and nobody sees the response. */
    boolean readsAbsurdSecondsBeside(int status) {
        return true;
    }

    /** The first request of a kind of client may take as long as a short deadline. */
    final void warmUp() {
        assertOk(client().order());
        forget();
    }

    /** Repeats a call with a short deadline until it has come as far as {@code met} before that. */
    final End orderUntil(BooleanSupplier met, ClientUnderTest client) {
        for (int i = 0; i < 20; i++) {
            forget();
            End end = client.order();
            if (met.getAsBoolean()) {
                return end;
            }
        }
        throw new AssertionError("no call came as far as that before its deadline");
    }

    final boolean lastAttemptGotAResponse() {
        return !attemptEvents.isEmpty()
                && attemptEvents.get(attemptEvents.size() - 1).status().isPresent();
    }

    @Test
    void serverIsNotAskedBeforeTheTimeInItsResponse() {
        List<Long> arrivals = new CopyOnWriteArrayList<>();
        try (RawServer server = RawServer.start((request, socket) -> {
            arrivals.add(System.nanoTime());
            write(
                    socket,
                    request.header("Idempotency-Attempt").equals("1")
                            ? "HTTP/1.1 429 Slow\r\nRetry-After-Ms: 400\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                            : WHOLE);
        })) {
            assertText(client(fast(), server.url()).order(), "whole");
        }
        assertThat(arrivals).hasSize(2);
        assertThat(TimeUnit.NANOSECONDS.toMillis(arrivals.get(1) - arrivals.get(0)))
                .isGreaterThanOrEqualTo(400);
    }

    @Test
    void oneSecondOfRetryAfterIsNotCutToTheWaitOfTheConfig() {
        warmUp();
        alwaysGet(status(503).withHeader("Retry-After", "1"));
        End end = orderUntil(this::lastAttemptGotAResponse, client(fast().deadline(Duration.ofMillis(900))));
        assertStatus(end, 503);
        assertThat(received()).hasSize(1);
    }

    // ---- refusals

    @ParameterizedTest
    @CsvSource({"key-missing,400", "key-invalid,400", "key-reused,422", "result-unavailable,409"})
    void refusalIsFinalAndTyped(String code, int status) {
        alwaysGet(refusal(code, status));
        RequestRefused refused =
                assertRefused(client().order(), Refusal.ofCode(code).orElseThrow());
        assertThat("\"" + refused.id().orElseThrow() + "\"").isEqualTo(ids().get(0));
        assertThat(received()).hasSize(1);
        assertEnd(REFUSED, 1);
    }

    @Test
    void refusalOutcomeUnknownIsTheUnknownWithTheId() {
        alwaysGet(refusal("outcome-unknown", 409));
        OutcomeUnknown unknown = assertUnknown(client().order());
        assertThat("\"" + unknown.id() + "\"").isEqualTo(ids().get(0));
        assertThat(received()).hasSize(1);
        assertEnd(UNKNOWN, 1);
    }

    @Test
    void storageThatComesBackLetsTheCallSucceed() {
        attemptsUpTo(2, refusal("storage-unavailable", 503));
        assertOk(client().order());
        assertOneId();
        assertEnd(SUCCEEDED, 3);
    }

    @Test
    void storageThatStaysAwayIsTypedAtTheEnd() {
        alwaysGet(refusal("storage-unavailable", 503));
        assertRefused(client().order(), Refusal.STORAGE_UNAVAILABLE);
        assertEnd(REFUSED, 3);
    }

    @Test
    void executionInProgressIsPolledAndCostsNoAttempt() {
        ResponseDefinitionBuilder inProgress = refusal("in-progress", 409).withHeader("Retry-After-Ms", "2");
        requestsGet(inProgress, inProgress, inProgress, inProgress, inProgress);
        IdempotenceClientConfig config = fast().maxAttempts(1).budget(5, 5, 0).build();
        assertOk(client(config).order());
        assertThat(received()).hasSize(6);
        assertOneId();
        assertThat(attempts()).containsExactly("1");
        assertThat(config.budget("orders").available()).isEqualTo(5);
        assertEnd(SUCCEEDED, 1);
    }

    /** It costs the deadline. */
    @Test
    void executionThatStaysInProgressIsUnknownAtTheDeadline() {
        warmUp();
        alwaysGet(refusal("in-progress", 409).withHeader("Retry-After-Ms", "20"));
        End end = orderUntil(() -> received().size() > 1, client(fast().deadline(Duration.ofMillis(700))));
        OutcomeUnknown unknown = assertUnknown(end);
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
        assertOk(client().order());
        assertEnd(SUCCEEDED, 1);

        events.clear();
        provider.resetRequests();
        alwaysGet(refusal("in-progress", 409)
                .withHeader(
                        "Retry-After",
                        RetryAfterTable.date(ZonedDateTime.now(ZoneOffset.UTC).withYear(9999))));
        assertUnknown(client().order());
        assertThat(received()).hasSize(1);
        assertEnd(UNKNOWN, 1);
    }

    @Test
    void responseOfTheOperationAfterInProgressIsTheResponse() {
        requestsGet(
                refusal("in-progress", 409).withHeader("Retry-After-Ms", "2"),
                status(422).withHeader("Idempotent-Replayed", "true"));
        assertStatus(client().order(), 422);
        assertThat(received()).hasSize(2);
        assertEnd(endOfAStoredError(), 1);
    }
}
