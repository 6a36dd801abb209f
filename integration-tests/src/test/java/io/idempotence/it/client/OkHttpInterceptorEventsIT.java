package io.idempotence.it.client;

import static com.github.tomakehurst.wiremock.client.WireMock.aResponse;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.spi.ILoggingEvent;
import com.github.tomakehurst.wiremock.client.ResponseDefinitionBuilder;
import com.github.tomakehurst.wiremock.http.Fault;
import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceAttemptEvent;
import io.idempotence.client.IdempotenceAttemptEvent.Outcome;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceClientEvent;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.metrics.IdempotenceClientMetrics;
import io.idempotence.client.okhttp.IdempotentOkHttp;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.io.IOException;
import java.net.ConnectException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import okhttp3.OkHttpClient;
import okhttp3.Response;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The events, meters and log lines of OkHttp calls without Feign. */
class OkHttpInterceptorEventsIT extends OkHttpInterceptorTestBase {
    private static final IdempotenceId ID = IdempotenceId.of("the-id-of-this-call");

    private static ResponseDefinitionBuilder inProgress() {
        return refusal("in-progress", 409).withHeader("Retry-After-Ms", "1");
    }

    private static ResponseDefinitionBuilder stored() {
        return ok().withHeader("Idempotent-Replayed", "true");
    }

    // ---- events

    @Test
    void enqueuedCallIsReportedAsAnyOther() throws Exception {
        requestsGet(status(503).withHeader("Retry-After-Ms", "3"), inProgress(), inProgress(), stored());
        try (Response response = enqueue(installed().newCall(order().build())).get(10, TimeUnit.SECONDS)) {
            assertThat(response.code()).isEqualTo(200);
        }
        assertTold();
    }

    private void assertTold() {
        assertThat(attemptEvents).hasSize(2);
        IdempotenceAttemptEvent first = attemptEvents.get(0);
        assertThat(first.outcome()).isEqualTo(Outcome.RETRYABLE);
        assertThat(first.status()).hasValue(503);
        assertThat(first.number()).isEqualTo(1);
        assertThat(first.requests()).isEqualTo(1);
        assertThat(first.waitBeforeNext().orElseThrow()).isGreaterThanOrEqualTo(Duration.ofMillis(3));
        assertThat(first.client()).isEqualTo("orders");
        assertThat(first.method()).isEqualTo("POST");
        IdempotenceAttemptEvent second = attemptEvents.get(1);
        assertThat(second.outcome()).isEqualTo(Outcome.REPLAYED);
        assertThat(second.number()).isEqualTo(2);
        assertThat(second.requests()).isEqualTo(3);
        assertThat(second.waitBeforeNext()).isEmpty();
        assertThat(ids()).hasSize(4).containsOnly("\"" + second.id().orElseThrow() + "\"");
        assertThat(first.id()).isEqualTo(second.id());
        assertThat(events).hasSize(1);
        IdempotenceClientEvent call = events.get(0);
        assertThat(call.result()).isEqualTo(IdempotenceClientEvent.Result.REPLAYED);
        assertThat(call.id()).isEqualTo(first.id());
        assertThat(call.requests()).isEqualTo(4);
        assertThat(call.duration()).isGreaterThanOrEqualTo(second.duration());
        // One retry for 5 tokens, one success that gives 1 back.
        assertThat(call.budgetLeft()).isEqualTo(496);
    }

    @Test
    void everyOutcomeOfAnAttemptIsReported() throws IOException {
        OkHttpClient client = installed(fast().maxAttempts(1));
        String nobody = nobody();
        assertThatThrownBy(() -> send(client, to(nobody))).isInstanceOf(ConnectException.class);
        requestsGet(
                aResponse().withFault(Fault.RANDOM_DATA_THEN_CLOSE),
                ok(),
                status(404),
                refusal("key-reused", 422),
                status(500).withHeader("Idempotent-Replayed", "true"),
                status(500));
        assertThatThrownBy(() -> send(client, order())).isInstanceOf(IOException.class);
        ok(client, order());
        assertThat(status(client, order())).isEqualTo(404);
        assertThatThrownBy(() -> send(client, order())).isInstanceOf(IOException.class);
        assertThat(status(client, order())).isEqualTo(500);
        assertThat(status(client, order())).isEqualTo(500);
        assertThat(attemptEvents)
                .extracting(IdempotenceAttemptEvent::outcome)
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

    // ---- metrics

    /** Paths have numbers in them. */
    @Test
    void noPathAndNoIdBecomesALabel() throws IOException {
        MeterRegistry registry = new SimpleMeterRegistry();
        OkHttpClient client = installed(fast().listener(IdempotenceClientMetrics.of(registry)));
        for (int i = 0; i < 20; i++) {
            ok(client, to(url("/orders/" + i)));
        }
        assertThat(registry.getMeters()).hasSize(4);
    }

    // ---- log

    /** Without a listener, as most have none. */
    private OkHttpClient silent() {
        IdempotenceClientConfig config = IdempotenceClientConfig.builder()
                .waitBound(Duration.ofMillis(1))
                .maxWait(Duration.ofMillis(5))
                .deadline(Duration.ofSeconds(30))
                .build();
        return built(IdempotentOkHttp.install(plain(), config, "orders"));
    }

    private static ResponseDefinitionBuilder[] thrice(ResponseDefinitionBuilder response) {
        return new ResponseDefinitionBuilder[] {response, response, response};
    }

    static Stream<List<ResponseDefinitionBuilder>> ends() {
        return Stream.of(
                List.of(thrice(status(504))),
                List.of(thrice(status(503))),
                List.of(thrice(refusal("storage-unavailable", 503))),
                List.of(refusal("key-reused", 422)),
                List.of(refusal("outcome-unknown", 409)),
                List.of(status(404)),
                List.of(status(503), stored()));
    }

    /** The exception of a call that gets these responses, or null. */
    private Throwable endOf(List<ResponseDefinitionBuilder> responses) {
        provider.resetAll();
        everythingIsFine();
        requestsGet(responses.toArray(ResponseDefinitionBuilder[]::new));
        OkHttpClient client = silent();
        return catchThrowable(() -> IdempotenceScope.<Integer, IOException>with(ID, () -> status(client, order())));
    }

    @ParameterizedTest
    @MethodSource("ends")
    void idIsInNoLineAboveDebugAndInNoMessageOfAnException(List<ResponseDefinitionBuilder> responses) {
        List<ILoggingEvent> lines = logged("io.idempotence.client", Level.DEBUG, () -> {
            for (Throwable end = endOf(responses); end != null; end = end.getCause()) {
                assertThat(String.valueOf(end.getMessage())).doesNotContain(ID.value());
            }
        });
        assertThat(ids()).hasSize(responses.size()).containsOnly("\"" + ID + "\"");
        assertThat(lines)
                .filteredOn(line -> line.getLevel() != Level.DEBUG)
                .allSatisfy(line -> assertThat(line.getFormattedMessage()).doesNotContain(ID.value()));
        // One for each attempt, one for the call.
        assertThat(lines)
                .filteredOn(line -> line.getLevel() == Level.DEBUG)
                .hasSize(responses.size() + 1)
                .allSatisfy(line -> assertThat(line.getFormattedMessage()).contains(ID.value()));
    }

    @Test
    void unknownOutcomeIsAWarningAndOtherEndsAreNone() {
        List<ILoggingEvent> lines = logged("io.idempotence.client", Level.WARN, () -> {
            endOf(List.of(thrice(status(503))));
            endOf(List.of(refusal("key-reused", 422)));
        });
        assertThat(lines).isEmpty();
        lines = logged("io.idempotence.client", Level.WARN, () -> endOf(List.of(thrice(status(504)))));
        assertThat(lines).singleElement().satisfies(line -> {
            assertThat(line.getLevel()).isEqualTo(Level.WARN);
            assertThat(line.getLoggerName()).isEqualTo(IdempotentOkHttp.class.getName());
            assertThat(line.getFormattedMessage())
                    .contains("orders")
                    .contains("POST")
                    .contains("unknown");
        });
    }
}
