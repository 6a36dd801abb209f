package io.idempotence.it.client;

import static com.github.tomakehurst.wiremock.client.WireMock.aResponse;
import static org.assertj.core.api.Assertions.assertThat;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.spi.ILoggingEvent;
import com.github.tomakehurst.wiremock.client.ResponseDefinitionBuilder;
import com.github.tomakehurst.wiremock.http.Fault;
import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceClientAttemptEvent;
import io.idempotence.client.IdempotenceClientAttemptEvent.Outcome;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceClientConfigBuilder;
import io.idempotence.client.IdempotenceClientEvent;
import io.idempotence.client.IdempotenceClientEvent.Result;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.it.client.ClientUnderTest.End;
import java.time.Duration;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The contract of what the client half reports of a call: its events and its log lines. Subclasses choose the client. */
abstract class EventsContract extends RedirectContract {
    private static final IdempotenceId ID = IdempotenceId.of("the-id-of-this-call");

    /** The class whose logger gets every line. */
    abstract Class<?> logger();

    /** What events and log lines call the method of an order. */
    String method() {
        return "POST";
    }

    // ---- events

    @Test
    void listenerGetsOneEventForEachAttemptAndOneForTheCall() {
        ResponseDefinitionBuilder inProgress = refusal("in-progress", 409).withHeader("Retry-After-Ms", "1");
        requestsGet(
                status(500).withHeader("Retry-After-Ms", "3"),
                inProgress,
                inProgress,
                ok().withHeader("Idempotent-Replayed", "true"));
        assertOk(client().order());
        assertThat(attemptEvents).hasSize(2);
        IdempotenceClientAttemptEvent first = attemptEvents.get(0);
        assertThat(first.client()).isEqualTo("orders");
        assertThat(first.method()).isEqualTo(method());
        assertThat(first.outcome()).isEqualTo(Outcome.RETRYABLE);
        assertThat(first.status()).hasValue(500);
        assertThat(first.number()).isEqualTo(1);
        assertThat(first.requests()).isEqualTo(1);
        assertThat(first.polls()).isZero();
        assertThat(first.waited()).isZero();
        assertThat(first.waitBeforeNext().orElseThrow()).isGreaterThanOrEqualTo(Duration.ofMillis(3));
        assertThat(first.toString()).doesNotContain(first.id().orElseThrow().value());
        IdempotenceClientAttemptEvent second = attemptEvents.get(1);
        assertThat(second.outcome()).isEqualTo(Outcome.REPLAYED);
        assertThat(second.number()).isEqualTo(2);
        assertThat(second.requests()).isEqualTo(3);
        assertThat(second.polls()).isEqualTo(2);
        assertThat(second.waited()).isEqualTo(second.duration());
        assertThat(second.waitBeforeNext()).isEmpty();
        assertThat(second.id()).isEqualTo(first.id());
        assertThat(ids()).hasSize(4).containsOnly("\"" + first.id().orElseThrow() + "\"");
        assertThat(events).hasSize(1);
        IdempotenceClientEvent call = events.get(0);
        assertThat(call.result()).isEqualTo(Result.REPLAYED);
        assertThat(call.id()).isEqualTo(first.id());
        assertThat(call.requests()).isEqualTo(4);
        assertThat(call.duration()).isGreaterThanOrEqualTo(second.duration());
        // One retry for 5 tokens, one success that gives 1 back.
        assertThat(call.budgetLeft()).isEqualTo(496);
    }

    @Test
    void everyOutcomeOfAnAttemptIsReported() {
        client(fast().maxAttempts(1), nobody()).order();
        ClientUnderTest client = client(fast().maxAttempts(1));
        for (ResponseDefinitionBuilder response : List.of(
                aResponse().withFault(Fault.RANDOM_DATA_THEN_CLOSE),
                ok(),
                status(404),
                refusal("key-reused", 422),
                status(500).withHeader("Idempotent-Replayed", "true"),
                status(500))) {
            alwaysGet(response);
            client.order();
        }
        assertThat(attemptEvents)
                .extracting(IdempotenceClientAttemptEvent::outcome)
                .containsExactly(
                        Outcome.NOT_SENT,
                        Outcome.UNDETERMINED,
                        Outcome.SUCCEEDED,
                        Outcome.FINAL,
                        Outcome.REFUSED,
                        Outcome.REPLAYED,
                        Outcome.RETRYABLE);
        assertThat(attemptEvents.get(1).status()).isEmpty();
    }

    // ---- log

    /** Without a listener, as most have none. */
    private ClientUnderTest silent() {
        IdempotenceClientConfigBuilder config = IdempotenceClientConfig.builder()
                .waitBound(Duration.ofMillis(1))
                .maxWait(Duration.ofMillis(5))
                .deadline(Duration.ofSeconds(30));
        return client(config);
    }

    private List<ILoggingEvent> lines(Level level, ThrowingCallable work) {
        return OkHttpInterceptorTestBase.logged(logger().getName(), level, work);
    }

    private List<String> warnings(ThrowingCallable work) {
        return lines(Level.WARN, work).stream()
                .map(ILoggingEvent::getFormattedMessage)
                .toList();
    }

    @ParameterizedTest
    @CsvSource({
        "504, '', 3",
        "503, '', 3",
        "503, storage-unavailable, 3",
        "422, key-reused, 1",
        "409, outcome-unknown, 1",
        "404, '', 1",
        "200, '', 1"
    })
    void idIsInNoLineAboveDebugAndInNoMessageOfAnException(int status, String refusal, int attempts) {
        alwaysGet(refusal.isEmpty() ? status(status) : refusal(refusal, status));
        ClientUnderTest client = silent();
        List<ILoggingEvent> lines = lines(Level.DEBUG, () -> {
            End end = IdempotenceScope.with(ID, () -> client.order());
            for (Throwable thrown = end.thrown(); thrown != null; thrown = thrown.getCause()) {
                assertThat(String.valueOf(thrown.getMessage())).doesNotContain(ID.value());
            }
        });
        assertThat(ids()).isNotEmpty().containsOnly("\"" + ID + "\"");
        assertThat(lines)
                .filteredOn(line -> line.getLevel() != Level.DEBUG)
                .allSatisfy(line -> assertThat(line.getFormattedMessage()).doesNotContain(ID.value()));
        // One for each attempt, one for the call.
        assertThat(lines)
                .filteredOn(line -> line.getLevel() == Level.DEBUG)
                .hasSize(attempts + 1)
                .allSatisfy(line -> assertThat(line.getFormattedMessage()).contains(ID.value()));
    }

    @Test
    void unknownOutcomeIsAWarningAndOtherEndsAreNone() {
        ClientUnderTest client = silent();
        assertThat(warnings(() -> {
                    alwaysGet(status(503));
                    client.order();
                    alwaysGet(refusal("key-reused", 422));
                    client.order();
                }))
                .isEmpty();
        alwaysGet(status(504));
        assertThat(warnings(client::order))
                .singleElement()
                .asString()
                .contains("orders", method(), "outcome is unknown");
    }

    @Test
    void callInDoubtThatIsMadeAgainUnderANewIdIsAWarningOnce() {
        ClientUnderTest client = silent();
        alwaysGet(status(504));
        client.order();
        alwaysGet(status(200));
        assertThat(warnings(client::order)).singleElement().asString().contains("orders", method(), "under a new ID");
        assertThat(warnings(client::order)).isEmpty();
    }

    /** The user information of an address is nobody's business. */
    @Test
    void redirectToAnotherOriginIsAWarningOnceForAClientWithoutIdAndUserInformation() {
        if (follows() == Follows.NOT) {
            return;
        }
        alwaysGet(status(307).withHeader("Location", "http://user:secret@localhost:1/orders"));
        ClientUnderTest client = silent();
        assertThat(warnings(() -> IdempotenceScope.with(ID, () -> {
                    client.order();
                    client.order();
                })))
                .singleElement()
                .asString()
                .contains("http://localhost:1", "@Idempotent(false)")
                .doesNotContain("secret", ID.value());
    }
}
