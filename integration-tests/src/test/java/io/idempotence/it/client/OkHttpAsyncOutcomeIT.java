package io.idempotence.it.client;

import static io.idempotence.client.IdempotenceClientEvent.Result.FAILED;
import static io.idempotence.client.IdempotenceClientEvent.Result.UNKNOWN;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import feign.AsyncFeign;
import feign.AsyncFeign.AsyncBuilder;
import feign.BaseBuilder;
import feign.Feign;
import feign.Response;
import feign.Target.HardCodedTarget;
import io.idempotence.client.feign.FeignOutcomeUnknownException;
import io.idempotence.it.wire.Drip;
import io.idempotence.it.wire.RawServer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import okhttp3.Dispatcher;
import org.junit.jupiter.api.Test;

/** The ends of calls that return a future, over Feign's client for OkHttp. */
class OkHttpAsyncOutcomeIT extends WireMockTestBase {
    @Override
    BaseBuilder<?, ?> builder() {
        return AsyncFeign.builder().client(okHttp());
    }

    private AsyncOrders async(String url) {
        return ((AsyncBuilder<?>) install(feign(), fast().build()))
                .target(new HardCodedTarget<>(AsyncOrders.class, "orders", url));
    }

    private AsyncOrders async() {
        return async("http://127.0.0.1:" + provider.port());
    }

    /** The request is cancelled. Where the response is there already, it is closed. */
    @Test
    void callerWhoGoesAwayLeavesNoConnectionBehind() {
        alwaysGet(ok().withFixedDelay(500));
        CompletableFuture<String> response = async().create("x");
        await().until(() -> received().size() == 1);
        assertThat(response.cancel(true)).isTrue();
        await().untilAsserted(() -> assertEnd(UNKNOWN, 1));
        awaitNoConnectionInUse();
        assertThat(received()).hasSize(1);
    }

    private void awaitNoConnectionInUse() {
        await().until(() -> okHttp.dispatcher().runningCallsCount() == 0
                && okHttp.connectionPool().connectionCount()
                        == okHttp.connectionPool().idleConnectionCount());
    }

    @Test
    void redirectThatComesAfterTheCallerWentAwayIsNotFollowed() {
        alwaysGet(status(307).withHeader("Location", "/v2").withFixedDelay(500));
        CompletableFuture<String> response = async().create("x");
        await().until(() -> received().size() == 1);
        assertThat(response.cancel(true)).isTrue();
        // What follows is enqueued before the call that it follows ends.
        awaitNoConnectionInUse();
        assertThat(received()).hasSize(1);
    }

    @Test
    void callThatIsCancelledWhileItWaitsSendsNothingMore() {
        // The other call waits for longer than the first one would have.
        requestsGet(
                status(503).withHeader("Retry-After-Ms", "2500"),
                status(503).withHeader("Retry-After-Ms", "3000"),
                status(503),
                status(503));
        AsyncOrders orders = async();
        CompletableFuture<String> response = orders.create("cancelled");
        await().until(() -> okHttp.connectionPool().idleConnectionCount() == 1);
        assertThat(response.cancel(true)).isTrue();
        assertThatThrownBy(() -> orders.create("not").get(60, TimeUnit.SECONDS)).hasMessageContaining("503");
        assertThat(bodies()).containsExactly("cancelled", "not", "not", "not");
    }

    @Test
    void callersTimeoutEndsThePolling() {
        alwaysGet(refusal("in-progress", 409).withHeader("Retry-After-Ms", "20"));
        CompletableFuture<String> response = async().create("x");
        await().until(() -> received().size() > 1);
        response.orTimeout(100, TimeUnit.MILLISECONDS);
        assertThatThrownBy(() -> response.get(60, TimeUnit.SECONDS)).hasCauseInstanceOf(TimeoutException.class);
        await().untilAsserted(() -> assertEnd(UNKNOWN, 1));
    }

    /** Nothing was sent, and the caller's future ends. */
    @Test
    void callThatTheExecutorOfOkHttpRejectsEnds() {
        ExecutorService closed = Executors.newSingleThreadExecutor();
        closed.shutdown();
        feign.okhttp.OkHttpClient rejecting = new feign.okhttp.OkHttpClient(
                okHttp.newBuilder().dispatcher(new Dispatcher(closed)).build());
        Orders orders = target(install(AsyncFeign.builder().client(rejecting), fast().build()));
        assertThatThrownBy(() -> orders.create("x")).hasStackTraceContaining("executor rejected");
        assertThat(received()).isEmpty();
        assertEnd(FAILED, 3);
    }

    /** As read by its caller: each response that is not the last was closed. */
    @Test
    void retriedResponsesAreClosed() throws Exception {
        attemptsUpTo(2, status(503));
        try (Response response = async().raw("x").get(60, TimeUnit.SECONDS)) {
            assertThat(response.status()).isEqualTo(200);
            assertThat(new String(response.body().asInputStream().readAllBytes(), StandardCharsets.UTF_8))
                    .isEqualTo(OK);
        }
        await().until(() -> okHttp.connectionPool().idleConnectionCount()
                == okHttp.connectionPool().connectionCount());
    }

    /** Nothing in Feign ends a status line that drips without end; OkHttp's own {@code callTimeout} does, and it is kept. */
    @Test
    void headersThatDripForEverEndWithTheCallTimeoutOfOkHttp() {
        // The first call loads classes, which may take longer than the timeout.
        orders().create("warm-up");
        events.clear();
        AtomicInteger requests = new AtomicInteger();
        try (RawServer server = RawServer.start((request, client) -> {
            requests.incrementAndGet();
            Drip.forEver(client);
        })) {
            feign.okhttp.OkHttpClient timed = new feign.okhttp.OkHttpClient(
                    okHttp.newBuilder().callTimeout(Duration.ofMillis(2_500)).build());
            AsyncOrders later = ((AsyncBuilder<?>) install(
                            AsyncFeign.builder().client(timed),
                            fast().maxAttempts(2).build()))
                    .target(new HardCodedTarget<>(AsyncOrders.class, "orders", server.url()));
            assertThatThrownBy(() -> later.create("x").get(60, TimeUnit.SECONDS))
                    .hasCauseInstanceOf(FeignOutcomeUnknownException.class);
            assertEnd(UNKNOWN, 2);
            events.clear();
            Orders now = target(
                    install(Feign.builder().client(timed), fast().maxAttempts(2).build()), server.url());
            assertThatThrownBy(() -> now.create("x")).isInstanceOf(FeignOutcomeUnknownException.class);
            assertEnd(UNKNOWN, 2);
        }
        assertThat(requests).hasValue(4);
    }
}
