package io.idempotence.it.pair;

import static io.idempotence.it.wire.FaultyProxy.Fault.NONE;
import static io.idempotence.it.wire.FaultyProxy.Fault.RESET_BEFORE_FORWARDING;
import static io.idempotence.it.wire.FaultyProxy.Fault.RESPONSE_LOST;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.idempotence.client.IdempotenceClientConfigBuilder;
import io.idempotence.client.IdempotenceClientEvent.Result;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.okhttp.IdempotentOkHttp;
import io.idempotence.client.okhttp.OkHttpOutcomeUnknownException;
import io.idempotence.client.okhttp.OkHttpRequestRefusedException;
import io.idempotence.http.Refusal;
import io.idempotence.it.wire.FaultyProxy;
import io.idempotence.it.wire.FaultyProxy.Fault;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import okhttp3.MediaType;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import okhttp3.RequestBody;
import okhttp3.Response;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** OkHttp without Feign and the server half: whatever happens on the way, there are as many payments as orders. */
class OkHttpInterceptorPairIT extends RedisPairTestBase {
    private OkHttpClient client;

    @BeforeEach
    void start() {
        client = client(fast());
    }

    @AfterEach
    void stop() {
        proxy.close();
        client.dispatcher().executorService().shutdown();
        client.connectionPool().evictAll();
    }

    private static OkHttpClient client(IdempotenceClientConfigBuilder config) {
        OkHttpClient.Builder builder =
                new OkHttpClient.Builder().readTimeout(READ_TIMEOUT_MILLIS, TimeUnit.MILLISECONDS);
        return IdempotentOkHttp.install(builder, config.build(), "payments").build();
    }

    private void between(FaultyProxy.Plan plan) {
        proxy = FaultyProxy.start(plan, instances());
    }

    private String pay(String order) throws IOException {
        Request request = new Request.Builder()
                .url(proxy.url() + "/payments")
                .post(RequestBody.create(order, MediaType.get("text/plain")))
                .build();
        try (Response response = client.newCall(request).execute()) {
            assertThat(response.code()).isEqualTo(201);
            return response.body().string();
        }
    }

    @ParameterizedTest
    @EnumSource
    void faultAfterFaultAndThereIsOnePaymentAndItsResponse(Fault fault) throws IOException {
        between((request, n) -> n <= 3 ? fault : NONE);
        assertThat(pay("order-1")).isEqualTo("receipt 1 for order-1");
        assertThat(ledger.payments()).isEqualTo(Map.of("order-1", 1));
        assertThat(proxy.requests().stream()
                        .map(r -> r.header("Idempotency-Key"))
                        .distinct())
                .hasSize(1);
    }

    @Test
    void responseAskedForAgainIsTheStoredOne() throws IOException {
        between((request, n) -> n == 1 ? RESPONSE_LOST : NONE);
        pay("order-1");
        assertThat(events.get(0).result()).isEqualTo(Result.REPLAYED);
    }

    @Test
    void callThatEndedInDoubtIsMadeAgainUnderItsId() throws IOException {
        client = client(fast().maxAttempts(2).deadline(Duration.ofSeconds(20)));
        between((request, n) -> n <= 4 ? RESPONSE_LOST : NONE);
        OkHttpOutcomeUnknownException unknown =
                catchThrowableOfType(OkHttpOutcomeUnknownException.class, () -> pay("order-1"));
        String receipt = null;
        for (int i = 0; receipt == null && i < 4; i++) {
            try {
                receipt = IdempotenceScope.with(unknown.id(), () -> pay("order-1"));
            } catch (OkHttpOutcomeUnknownException e) {
                assertThat(e.id()).isEqualTo(unknown.id());
            }
        }
        assertThat(receipt).isEqualTo("receipt 1 for order-1");
        assertThat(ledger.payments()).isEqualTo(Map.of("order-1", 1));
    }

    @Test
    void anotherOrderUnderTheSameIdIsRefused() throws IOException {
        between((request, n) -> NONE);
        pay("order-1");
        OkHttpRequestRefusedException refused = IdempotenceScope.with(
                events.get(0).id().orElseThrow(),
                () -> catchThrowableOfType(OkHttpRequestRefusedException.class, () -> pay("order-2")));
        assertThat(refused.refusal()).isEqualTo(Refusal.KEY_REUSED);
        assertThat(ledger.payments()).isEqualTo(Map.of("order-1", 1));
    }

    @Test
    void manyCallersOverANetworkThatSpoilsEveryThirdRequestPayEachOrderOnce() throws Exception {
        Random random = new Random(17);
        between((request, n) -> {
            int dice = n > 4 ? 9 : random.nextInt(6);
            return dice == 0 ? RESET_BEFORE_FORWARDING : dice == 1 ? RESPONSE_LOST : NONE;
        });
        Map<String, String> responses = concurrently(30, number -> {
            try {
                return pay("order-" + number);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        });
        Map<String, Integer> once = new TreeMap<>();
        for (int i = 0; i < 30; i++) {
            once.put("order-" + i, 1);
            assertThat(responses.get(Integer.toString(i))).endsWith(" for order-" + i);
        }
        assertThat(ledger.payments()).isEqualTo(once);
    }
}
