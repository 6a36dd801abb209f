package io.idempotence.it.client;

import static com.github.tomakehurst.wiremock.client.WireMock.aResponse;
import static io.idempotence.client.IdempotenceClientEvent.Result.FAILED;
import static io.idempotence.client.IdempotenceClientEvent.Result.SUCCEEDED;
import static io.idempotence.client.IdempotenceClientEvent.Result.UNKNOWN;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.github.tomakehurst.wiremock.http.Fault;
import io.idempotence.client.IdempotenceClientAttemptEvent;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceClientEvent;
import io.idempotence.client.IdempotenceClientListener;
import io.idempotence.client.OutcomeUnknown;
import io.idempotence.http.Refusal;
import io.idempotence.it.client.ClientUnderTest.End;
import io.idempotence.it.wire.Drip;
import io.idempotence.it.wire.FullBacklog;
import io.idempotence.it.wire.RawServer;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.ConnectException;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The behaviour of the client half after each kind of attempt, the same for every client: with a response, without one, and at the limits
 * of a call. Subclasses choose the client.
 */
abstract class ClientContract extends ScopeContract {
    // ---- no connection

    @Test
    void refusedConnectionIsRetriedAndNothingIsUnknown() {
        End end = client(fast(), nobody()).order();
        assertNotSent(end);
        assertThat(end.thrown()).satisfies(causedBy(ConnectException.class));
        assertEnd(FAILED, 3);
    }

    /** It was in doubt over Feign, as the exception is that of a read timeout. */
    @Test
    void connectTimeoutIsNotSent() throws IOException {
        try (FullBacklog full = new FullBacklog()) {
            // The read timeout of the JDK's client includes connecting, and must not come first.
            End end = client(fast().maxAttempts(2).build(), full.url(), Duration.ofMillis(200), Duration.ofSeconds(20))
                    .order();
            assertNotSent(end);
            assertThat(end.thrown()).satisfies(causedBy(connectTimeout()));
            assertEnd(FAILED, 2);
        }
    }

    /** Nothing was sent, and nothing would be the next time. */
    @Test
    void certificateThatIsNotTrustedIsFinal() {
        assertNotSent(
                client(fast(), "https://127.0.0.1:" + provider.httpsPort()).order());
        assertEnd(FAILED, 1);
        assertThat(received()).isEmpty();
    }

    // ---- sent, and no response

    @Test
    void responseLaterThanTheReadTimeoutIsAskedForAgain() {
        attempt(1, ok().withFixedDelay(20_000));
        // On a busy machine later responses may be late as well.
        assertOk(client(
                        fast().maxAttempts(50).build(),
                        "http://127.0.0.1:" + provider.port(),
                        TWENTY_SECONDS,
                        Duration.ofMillis(500))
                .order());
        assertOneId();
        assertThat(attempts()).startsWith("1", "2");
        assertThat(events).singleElement().matches(event -> event.result() == SUCCEEDED);
    }

    /** Reset, unexpected end, and a response that is none. */
    @ParameterizedTest
    @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "MALFORMED_RESPONSE_CHUNK")
    void lostResponseIsAskedForAgainWithTheSameId(Fault fault) {
        attemptsUpTo(2, aResponse().withFault(fault));
        assertOk(client().order());
        assertOneId();
        assertThat(attempts()).containsExactly("1", "2", "3");
        assertEnd(SUCCEEDED, 3);
    }

    @ParameterizedTest
    @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "MALFORMED_RESPONSE_CHUNK")
    void responseThatIsAlwaysLostIsUnknownAndTheExceptionCarriesTheId(Fault fault) {
        alwaysGet(aResponse().withFault(fault));
        OutcomeUnknown unknown = assertUnknown(client().order());
        assertThat(unknown.attempts()).isEqualTo(3);
        assertThat(unknown.lastCause()).isNotNull();
        assertThat(ids()).isNotEmpty().allMatch(id -> id.equals("\"" + unknown.id() + "\""));
        assertEnd(UNKNOWN, 3);
    }

    /** What is no HTTP, in the place of a response. */
    @ParameterizedTest
    @ValueSource(strings = {"SSH-2.0-OpenSSH_9.6\r\n", "HTTP/1.1 abc OK\r\n\r\n", "HTTP/1.1\r\n\r\n"})
    void malformedResponseIsRequestedAgainAndUnknownAtTheEnd(String garbage) {
        AtomicBoolean better = new AtomicBoolean(true);
        Set<String> ids = ConcurrentHashMap.newKeySet();
        try (RawServer server = RawServer.start((request, socket) -> {
            ids.add(request.header("Idempotency-Key"));
            boolean first = request.header("Idempotency-Attempt").equals("1");
            write(socket, first || !better.get() ? garbage : WHOLE);
        })) {
            ClientUnderTest client = client(fast(), server.url());
            assertText(client.order(), "whole");
            assertEnd(SUCCEEDED, 2);
            events.clear();
            better.set(false);
            assertUnknown(client.order());
            assertEnd(UNKNOWN, 3);
        }
        assertThat(ids).hasSize(2);
    }

    @Test
    void responseThatIsCutInItsHeadersIsAskedForAgain() {
        try (RawServer server = RawServer.start((request, socket) -> {
            boolean first = request.header("Idempotency-Attempt").equals("1");
            write(socket, first ? "HTTP/1.1 200 OK\r\nContent-Le" : WHOLE);
        })) {
            assertText(client(fast(), server.url()).order(), "whole");
        }
    }

    /** No read waits for long, so no timeout sees it. What is dripped to the end past the deadline is no response any more. */
    @Test
    void responseWhoseHeadersDripPastTheDeadlineIsUnknown() {
        warmUp();
        AtomicBoolean arrived = new AtomicBoolean();
        try (RawServer server = RawServer.start((request, socket) -> {
            arrived.set(true);
            Drip.write(socket, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Drip: " + "x".repeat(30) + "\r\n\r\nwhole");
        })) {
            ClientUnderTest client = client(fast().deadline(Duration.ofMillis(400)), server.url());
            assertUnknown(orderUntil(() -> arrived.getAndSet(false), client));
        }
        assertEnd(UNKNOWN, 1);
    }

    /** Clients repeat a request whose pooled connection was dropped; the ID makes that safe. */
    @Test
    void requestThatTheClientRepeatsByItselfCarriesTheSameId() {
        ClientUnderTest client = client();
        assertOk(client.order());
        provider.resetRequests();
        attempt(1, aResponse().withFault(Fault.EMPTY_RESPONSE));
        assertOk(client.order());
        assertOneId();
        assertThat(received()).hasSizeGreaterThan(1);
    }

    // ---- a handler that failed, and perhaps took effect

    /** As when its instance restarts. It was the failure to connect, which reads as "not executed". */
    @ParameterizedTest
    @ValueSource(ints = {500, 503})
    void callThatReachesNobodyAfterAHandlerFailureEndsWithThatFailure(int status) {
        try (RestartingServer server = new RestartingServer(status)) {
            End end = client(fast(), server.url()).order();
            assertStatus(end, status);
            if (end.thrown() != null) {
                assertThat(end.thrown().getSuppressed()).singleElement().satisfies(causedBy(ConnectException.class));
            }
        }
        assertEnd(FAILED, 3);
    }

    /** The last of them is no response of the operation to the attempts before it. */
    @ParameterizedTest
    @CsvSource({"401, ''", "404, ''", "408, ''", "429, ''", "422, key-reused", "503, storage-unavailable"})
    void failureOfTheHandlerIsTheEndOfACallThatThenReachesOnlyWhatIsInFrontOfIt(int status, String refusal) {
        alwaysGet(refusal.isEmpty() ? status(status) : refusal(refusal, status));
        attempt(1, status(500));
        End end = client().order();
        assertStatus(end, 500);
        assertThat(end.body()).isNotEqualTo("status " + status);
        assertThat(received()).hasSizeGreaterThan(1);
        assertThat(events).singleElement().matches(event -> event.result() == FAILED);
    }

    @Test
    void anythingThatIsKnownOfTheOperationReplacesAFailureOfItsHandler() {
        attempt(1, status(500));
        attempt(3, aResponse().withFault(Fault.CONNECTION_RESET_BY_PEER));
        ClientUnderTest client = client();
        for (int status : new int[] {400, 422}) {
            attempt(2, status(status));
            assertStatus(client.order(), status);
        }
        attempt(2, status(500).withHeader("Idempotent-Replayed", "true").withBody("stored"));
        assertThat(client.order().body()).isEqualTo("stored");
        attempt(2, refusal("result-unavailable", 409));
        assertRefused(client.order(), Refusal.RESULT_UNAVAILABLE);
        attempt(2, refusal("outcome-unknown", 409));
        assertUnknown(client.order());
        attempt(2, status(500));
        assertUnknown(client.order());
        attempt(3, status(503));
        assertThat(client.order().body()).isEqualTo("status 503");
    }

    /** It was an exception that reads as "nothing was sent". */
    @ParameterizedTest
    @ValueSource(ints = {429, 500, 503})
    void callWhoseDeadlinePassesDuringAWaitEndsWithTheStatusBefore(int status) {
        warmUp();
        alwaysGet(status(status));
        Duration deadline = Duration.ofSeconds(1);
        ClientUnderTest client = client(fast().deadline(deadline).listener(new IdempotenceClientListener() {
            @Override
            public void onAttempt(IdempotenceClientAttemptEvent event) {
                attemptEvents.add(event);
                long ended = System.nanoTime();
                await().until(() -> System.nanoTime() - ended > deadline.toNanos());
            }

            @Override
            public void onCall(IdempotenceClientEvent event) {
                events.add(event);
            }
        }));
        assertStatus(orderUntil(this::lastAttemptGotAResponse, client), status);
        assertThat(received()).hasSize(1);
        assertThat(Thread.currentThread().isInterrupted()).isFalse();
        assertEnd(FAILED, 1);
    }

    // ---- interrupts

    @ParameterizedTest
    @ValueSource(ints = {429, 500, 503})
    void callThatIsInterruptedDuringAWaitEndsWithTheStatusBeforeAndKeepsTheFlag(int status)
            throws InterruptedException {
        if (!sendsInTheThreadOfTheCaller()) {
            return;
        }
        alwaysGet(status(status).withHeader("Retry-After", "25"));
        ClientUnderTest client = client(fast().deadline(Duration.ofMinutes(2)));
        AtomicReference<End> end = new AtomicReference<>();
        InterruptedCaller caller = new InterruptedCaller(() -> {
            end.set(client.order());
            return null;
        });
        await().until(() -> attemptEvents.size() == 1);
        caller.interrupt();
        assertThat(caller.keptItsFlag()).isTrue();
        assertStatus(end.get(), status);
        assertThat(received()).hasSize(1);
        assertEnd(FAILED, 1);
    }

    /** It was sent and then cut, which left its outcome unknown. A kept connection makes that more likely. */
    @Test
    void callOfAnInterruptedThreadIsNotSent() {
        if (!sendsInTheThreadOfTheCaller()) {
            return;
        }
        ClientUnderTest client = client();
        assertOk(client.order());
        forget();
        Thread.currentThread().interrupt();
        End end = client.order();
        assertThat(Thread.interrupted()).isTrue();
        assertNotSent(end);
        assertThat(end.thrown()).satisfies(causedBy(InterruptedIOException.class));
        assertThat(received()).isEmpty();
        assertEnd(FAILED, 1);
    }

    /** Otherwise an interrupt of the caller does not concern the request. */
    boolean sendsInTheThreadOfTheCaller() {
        return true;
    }

    // ---- limits

    @Test
    void emptyBudgetEndsTheRetries() {
        alwaysGet(status(500));
        IdempotenceClientConfig config = fast().maxAttempts(9).budget(10, 5, 1).build();
        assertStatus(client(config).order(), 500);
        assertThat(received()).hasSize(3);
        assertThat(config.budget("orders").available()).isZero();
    }

    /** It is the target's, not the client's. */
    @Test
    void budgetIsSharedByTheClientsOfATarget() {
        alwaysGet(status(500));
        IdempotenceClientConfig config = fast().maxAttempts(9).budget(10, 5, 1).build();
        assertStatus(client(config).order(), 500);
        assertStatus(client(config).order(), 500);
        assertThat(received()).hasSize(4);
    }

    /** 0 is no timeout at all. */
    @ParameterizedTest
    @ValueSource(ints = {0, 60_000})
    void attemptThatHangsEndsAtTheDeadlineHoweverLongItsOwnTimeout(int readTimeoutMillis) {
        warmUp();
        alwaysGet(ok().withFixedDelay(2_000));
        IdempotenceClientConfig config = fast().deadline(Duration.ofMillis(400)).build();
        ClientUnderTest client = client(
                config, "http://127.0.0.1:" + provider.port(), TWENTY_SECONDS, Duration.ofMillis(readTimeoutMillis));
        assertUnknown(orderUntil(() -> !received().isEmpty(), client));
        assertEnd(UNKNOWN, 1);
    }
}
