package io.idempotence.it.client;

import static com.github.tomakehurst.wiremock.client.WireMock.aResponse;
import static io.idempotence.client.IdempotenceClientEvent.Result.UNKNOWN;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import com.github.tomakehurst.wiremock.http.Fault;
import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.IdempotenceScope.Work;
import io.idempotence.client.OutcomeUnknown;
import io.idempotence.http.Refusal;
import io.idempotence.it.client.ClientUnderTest.End;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Calls inside of an {@link IdempotenceScope}: their ID is saved, and they are made again under it. Subclasses choose the client. */
abstract class ScopeContract extends EventsContract {
    private static final IdempotenceId JOB = IdempotenceId.of("job-1");

    private final Instant hourAgo = Instant.now().minusSeconds(3600);

    /** An order that was sent an hour ago, made again. */
    private End resumed(ClientUnderTest client) {
        return IdempotenceScope.resume(JOB, hourAgo, () -> client.order());
    }

    // ---- saved

    @Test
    void idIsSavedOnceBeforeTheFirstRequest() {
        attempt(1, status(500));
        List<String> saved = new ArrayList<>();
        List<Integer> requests = new ArrayList<>();
        Work<End, RuntimeException> order = client()::order;
        assertOk(IdempotenceScope.saving(
                id -> {
                    saved.add("\"" + id + "\"");
                    requests.add(received().size());
                },
                order));
        assertThat(requests).containsExactly(0);
        assertThat(saved).hasSize(1).containsAll(ids());
        assertThat(attempts()).containsExactly("1", "2");
    }

    @Test
    void nothingIsSentWhenTheIdCannotBeSaved() {
        Work<End, RuntimeException> order = client()::order;
        End end = IdempotenceScope.saving(
                id -> {
                    throw new IllegalStateException("disk full");
                },
                order);
        assertThat(end.thrown()).isNotInstanceOf(OutcomeUnknown.class).hasStackTraceContaining("disk full");
        assertThat(received()).isEmpty();
    }

    // ---- made again

    @Test
    void unknownCarriesWhatMakesTheSameCallAgain() {
        Instant before = Instant.now();
        alwaysGet(aResponse().withFault(Fault.RANDOM_DATA_THEN_CLOSE));
        ClientUnderTest client = client();
        OutcomeUnknown unknown = assertUnknown(client.order());
        assertThat(unknown.firstSentAt()).isBetween(before, Instant.now());
        alwaysGet(ok());
        assertOk(IdempotenceScope.with(unknown.id(), () -> client.order()));
        assertOk(IdempotenceScope.resume(unknown.id(), unknown.firstSentAt(), () -> client.order()));
        assertOneId();
    }

    /** The earlier call may have been executed, and these responses do not show whether it was. */
    @ParameterizedTest
    @CsvSource({"503, ''", "401, ''", "404, ''", "422, key-reused", "503, storage-unavailable"})
    void resumedCallIsAsUnknownAsBeforeUntilAResponseSettlesIt(int status, String refusal) {
        alwaysGet(refusal.isEmpty() ? status(status) : refusal(refusal, status));
        OutcomeUnknown unknown = assertUnknown(resumed(client()));
        assertThat(unknown.id()).isEqualTo(JOB);
        assertThat(unknown.firstSentAt()).isEqualTo(hourAgo);
        assertEnd(UNKNOWN, status == 503 ? 3 : 1);
    }

    @Test
    void resumedCallThatIsNotSentIsAsUnknownAsBefore() {
        ClientUnderTest refused = client(fast(), nobody());
        OutcomeUnknown unknown = assertUnknown(resumed(refused));
        assertThat(unknown.id()).isEqualTo(JOB);
        assertThat(unknown.firstSentAt()).isEqualTo(hourAgo);
        // In a scope of the caller's own it may be the first one.
        assertNotSent(IdempotenceScope.with(JOB, () -> refused.order()));
    }

    /** As in a retry of the caller's own, whose last exception is the one that it gets. */
    @Test
    void callThatIsNotSentEndsAsTheOneBeforeInItsScopeWhoseHandlerFailed() {
        try (RestartingServer server = new RestartingServer(500)) {
            ClientUnderTest client = client(fast().maxAttempts(1), server.url());
            IdempotenceScope.with(JOB, () -> {
                assertStatus(client.order(), 500);
                assertStatus(client.order(), 500);
            });
            assertNotSent(client.order());
        }
    }

    @Test
    void responseOfTheOperationSettlesAResumedCall() {
        ClientUnderTest client = client();
        alwaysGet(status(400));
        assertStatus(resumed(client), 400);
        alwaysGet(status(404).withHeader("Idempotent-Replayed", "true"));
        assertStatus(resumed(client), 404);
        alwaysGet(refusal("result-unavailable", 409));
        assertRefused(resumed(client), Refusal.RESULT_UNAVAILABLE);
    }

    @Test
    void callThatTheServerHalfMayHaveForgottenIsNotResumed() {
        Instant dayAgo = Instant.now().minus(Duration.ofDays(1));
        ClientUnderTest client = client();
        assertThat(catchThrowable(() -> IdempotenceScope.resume(JOB, dayAgo, () -> {
                    throw client.order().thrown();
                })))
                .isNotInstanceOf(OutcomeUnknown.class)
                .satisfies(causedBy(IllegalStateException.class))
                .hasStackTraceContaining("server-retention");
        assertThat(received()).isEmpty();
        ClientUnderTest patient = client(fast().serverRetention(Duration.ofDays(2)));
        assertOk(IdempotenceScope.resume(JOB, dayAgo, () -> patient.order()));
        assertThat(ids()).containsExactly("\"job-1\"");
    }

    // ---- redirected

    /** Nothing was sent to the other origin. */
    @Test
    void callThatWasRedirectedToAnotherOriginMayBeMadeAgainInItsScope() {
        alwaysGet(status(307).withHeader("Location", nobody() + "/orders"));
        ClientUnderTest client = client();
        IdempotenceScope.with(JOB, () -> {
            assertStatus(client.order(), 307);
            alwaysGet(ok());
            assertOk(client.order());
        });
        assertThat(ids()).containsExactly("\"job-1\"", "\"job-1\"");
    }

    @Test
    void resumedCallIsNotSentToAnotherOrigin() {
        try (Elsewhere elsewhere = new Elsewhere()) {
            alwaysGet(status(307).withHeader("Location", elsewhere.server.url() + "/orders"));
            assertUnknown(resumed(client()));
            assertThat(elsewhere.received).isEmpty();
        }
        assertEnd(UNKNOWN, 1);
    }
}
