package io.idempotence.it.client;

import static com.github.tomakehurst.wiremock.client.WireMock.aResponse;
import static io.idempotence.client.IdempotenceClientEvent.Result.FAILED;
import static io.idempotence.client.IdempotenceClientEvent.Result.SUCCEEDED;
import static io.idempotence.client.IdempotenceClientEvent.Result.UNKNOWN;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.github.tomakehurst.wiremock.http.Fault;
import io.idempotence.client.metrics.IdempotenceClientMetrics;
import io.idempotence.client.okhttp.IdempotentOkHttp;
import io.idempotence.client.okhttp.OkHttpOutcomeUnknownException;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import okhttp3.Interceptor;
import okhttp3.MediaType;
import okhttp3.OkHttpClient;
import okhttp3.RequestBody;
import okhttp3.Response;
import okio.BufferedSink;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * The treatment of attempts by the client half where OkHttp differs from other clients; {@link OkHttpInterceptorContractIT} has the rest.
 */
class OkHttpInterceptorAttemptIT extends OkHttpInterceptorTestBase {
    // ---- sent, and no response

    /** The caller reads it, after the call: nothing of ours can try again by then. */
    @Test
    void interruptedBodyIsSeenByTheCaller() throws IOException {
        alwaysGet(aResponse().withFault(Fault.MALFORMED_RESPONSE_CHUNK));
        try (Response response = send(installed(), order())) {
            assertThat(response.code()).isEqualTo(200);
            assertThatThrownBy(() -> response.body().string()).isInstanceOf(IOException.class);
        }
        assertThat(attempts()).containsExactly("1");
    }

    /** The first of two requests of one attempt may have been executed; a login's response to the second does not settle that. */
    @Test
    void requestThatOkHttpRepeatsByItselfLeavesItsDoubt() throws IOException {
        OkHttpClient client = installed();
        ok(client, order());
        requestsGet(aResponse().withFault(Fault.EMPTY_RESPONSE), status(401));
        assertThatThrownBy(() -> send(client, order())).isInstanceOf(OkHttpOutcomeUnknownException.class);
        assertThat(attempts()).containsExactly("1");
        assertThat(received()).hasSize(3);
    }

    // ---- Retry-After

    /** OkHttp itself repeats, once, a 408 without {@code Retry-After}, and a 408 or 503 with {@code Retry-After: 0}. */
    private static boolean isRepeatedByOkHttp(int status, RetryAfterTable.Row row) {
        boolean seconds = row.header().equals("Retry-After");
        return status == 408 && !seconds
                || (status == 408 || status == 503) && seconds && row.value().equals("0");
    }

    /** Whatever header comes with the status. */
    @ParameterizedTest
    @MethodSource("io.idempotence.it.client.RetryAfterTable#soon")
    void whatOkHttpSendsAgainByItselfIsPartOfTheAttempt(RetryAfterTable.Row row) throws IOException {
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

    /** Nothing is known of a request that got a response and then could not be sent again. */
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

    /** Held for as long as this side listens, and no longer. */
    @Test
    void serverIsAskedToHoldADuplicateNoLongerThanTheReadTimeout() throws IOException {
        OkHttpClient patient =
                built(IdempotentOkHttp.install(plain().readTimeout(Duration.ofMillis(3_600)), fast().build())
                        .addInterceptor(OkHttpInterceptorAttemptIT::readsForLonger));
        ok(patient, order());
        ok(patient, order().header("Prefer", "wait=1"));
        ok(
                installed(
                        fast(),
                        builder -> builder.readTimeout(Duration.ofMillis(1_400))
                                .addInterceptor(OkHttpInterceptorAttemptIT::readsForLonger)),
                order());
        ok(patient, order().get());
        assertThat(received().stream().map(request -> header(request, "Prefer")))
                .containsExactly("wait=3", "wait=1", "", "");
    }

    /** A busy machine may be late, and then the request is sent again. */
    private static Response readsForLonger(Interceptor.Chain chain) throws IOException {
        return chain.withReadTimeout(20, TimeUnit.SECONDS).proceed(chain.request());
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
        RequestBody broken = body(sink -> {
            throw new IOException("the file is gone");
        });
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

    /** A response that is not closed holds its connection. */
    private static void assertNothingIsHeld(OkHttpClient client) {
        assertThat(client.connectionPool().idleConnectionCount())
                .isEqualTo(client.connectionPool().connectionCount());
    }
}
