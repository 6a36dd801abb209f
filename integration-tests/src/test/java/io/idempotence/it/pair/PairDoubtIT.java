package io.idempotence.it.pair;

import static io.idempotence.it.wire.FaultyProxy.Fault.NONE;
import static io.idempotence.it.wire.FaultyProxy.Fault.RESPONSE_LOST;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import feign.Feign;
import feign.FeignException;
import feign.Headers;
import feign.RequestLine;
import feign.Target.HardCodedTarget;
import io.idempotence.IdempotenceId;
import io.idempotence.Idempotent;
import io.idempotence.OnAbandoned;
import io.idempotence.client.IdempotenceClientEvent;
import io.idempotence.client.IdempotenceClientEvent.Result;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.feign.FeignOutcomeUnknownException;
import io.idempotence.client.feign.IdempotentFeign;
import io.idempotence.it.wire.RawServer;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.redis.EmbeddedRedis;
import io.idempotence.server.redis.ServerTime;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Cases in which one half could take an outcome for certain that is not. Each was once a bug. */
class PairDoubtIT extends PairTestBase {
    private EmbeddedRedis redis;

    @BeforeEach
    void start() {
        redis = EmbeddedRedis.start();
    }

    @AfterEach
    void stop() {
        redis.close();
    }

    private void provider() {
        startProvider(() -> redis.connect());
    }

    interface Puts {
        @Idempotent
        @RequestLine("PUT /payments")
        @Headers("Content-Type: text/plain")
        String put(String order);

        @RequestLine("POST /payments")
        String tick();
    }

    @Test
    void handlerLongerThanItsLeaseIsNotRunASecondTimeWhileItRuns() {
        policy = IdempotencePolicy.builder()
                .lease(Duration.ofSeconds(1))
                .onAbandoned(OnAbandoned.RE_EXECUTE)
                .build();
        provider();
        handler.set((request, response) -> {
            String order = order(request);
            ServerTime.letPass(redis, policy.lease().multipliedBy(3));
            respond(response, 201, ledger.pay(order));
        });
        Payments payments = through((request, n) -> NONE, fast(), okHttp(), 500, instances());
        assertThat(payments.pay("order-1")).isEqualTo("receipt 1 for order-1");
        assertThat(ledger.payments()).isEqualTo(Map.of("order-1", 1));
    }

    @Test
    void keyReusedAfterALostResponseIsUnknownAndNotSafeForANewId() {
        provider();
        through((request, n) -> n == 1 ? RESPONSE_LOST : NONE);
        AtomicInteger iv = new AtomicInteger();
        Feign.Builder builder = IdempotentFeign.install(Feign.builder().client(okHttp()), fast().build())
                .requestInterceptor(template -> template.query("ts", Integer.toString(iv.incrementAndGet())));
        Payments payments = builder.target(new HardCodedTarget<>(Payments.class, "payments", proxy.url()));
        Throwable end = catchThrowable(() -> payments.pay("order-1"));
        assertThat(ledger.payments()).isEqualTo(Map.of("order-1", 1));
        assertThat(end).isInstanceOf(FeignOutcomeUnknownException.class);
    }

    @Test
    void responseThatCouldNotBeDecodedIsReadLaterUnderTheIdOfItsException() {
        provider();
        Feign.Builder unable = feign(okHttp(), READ_TIMEOUT_MILLIS).decoder((response, type) -> {
            throw new IllegalStateException("not yet able to read this");
        });
        Instant sent = Instant.now();
        Payments before = through((request, n) -> NONE, fast(), unable, instances());
        FeignException end = catchThrowableOfType(FeignException.class, () -> before.pay("order-1"));
        IdempotenceId id = IdempotentFeign.idOf(end).orElseThrow();
        Payments after = through((request, n) -> NONE);
        assertThat(IdempotenceScope.resume(id, sent, () -> after.pay("order-1")))
                .isEqualTo("receipt 1 for order-1");
        assertThat(ledger.payments()).isEqualTo(Map.of("order-1", 1));
        assertThat(events).extracting(IdempotenceClientEvent::result).containsExactly(Result.FAILED, Result.REPLAYED);
    }

    @Test
    void putThatCarriesAnIdIsNotRunTwiceSilently() {
        provider();
        through((request, n) -> n == 1 ? RESPONSE_LOST : NONE);
        Puts puts = IdempotentFeign.install(Feign.builder().client(okHttp()), fast().build())
                .target(new HardCodedTarget<>(Puts.class, "payments", proxy.url()));
        assertThat(puts.put("order-1")).isEqualTo("receipt 1 for order-1");
        assertThat(ledger.payments()).isEqualTo(Map.of("order-1", 1));
    }

    /** HttpURLConnection re-sends a POST without a body by itself, and the failure of the second hides the first. */
    @Test
    void postDeliveredOnAKeptConnectionAndThenRefusedIsUnknown() throws Exception {
        List<String> delivered = new CopyOnWriteArrayList<>();
        ExecutorService thread = Executors.newSingleThreadExecutor();
        try (ServerSocket listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress())) {
            thread.execute(() -> {
                try (Socket client = listener.accept()) {
                    InputStream in = client.getInputStream();
                    delivered.add(head(in));
                    client.getOutputStream()
                            .write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
                                    .getBytes(StandardCharsets.US_ASCII));
                    client.getOutputStream().flush();
                    delivered.add(head(in));
                    listener.close();
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
            });
            Puts puts = IdempotentFeign.install(Feign.builder(), fast().build())
                    .target(new HardCodedTarget<>(Puts.class, "x", "http://127.0.0.1:" + listener.getLocalPort()));
            puts.tick();
            Throwable end = catchThrowable(puts::tick);
            assertThat(delivered).hasSize(2);
            assertThat(end).isInstanceOf(FeignOutcomeUnknownException.class);
        } finally {
            thread.shutdownNow();
        }
    }

    private static String head(InputStream in) throws IOException {
        StringBuilder head = new StringBuilder();
        while (head.indexOf("\r\n\r\n") < 0) {
            head.append((char) in.read());
        }
        return head.toString();
    }

    /** OkHttp's own re-send logic parses Retry-After with Integer.valueOf. */
    @Test
    void uncheckedExceptionOfTheHttpClientAfterSendingIsUnknown() {
        try (RawServer server = RawServer.start((request, client) -> {
            ledger.pay(request.text());
            client.getOutputStream()
                    .write("HTTP/1.1 503 No\r\nRetry-After: 99999999999\r\nContent-Length: 0\r\n\r\n"
                            .getBytes(StandardCharsets.US_ASCII));
        })) {
            Payments payments = IdempotentFeign.install(Feign.builder().client(okHttp()), fast().build())
                    .target(new HardCodedTarget<>(Payments.class, "payments", server.url()));
            assertThatThrownBy(() -> payments.pay("order-1")).isInstanceOf(FeignOutcomeUnknownException.class);
        }
    }
}
