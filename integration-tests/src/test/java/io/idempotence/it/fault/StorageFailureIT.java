package io.idempotence.it.fault;

import static io.idempotence.it.container.Http.post;
import static io.idempotence.it.container.Http.refusal;
import static io.idempotence.it.container.Http.replayed;
import static io.idempotence.it.container.Http.text;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.it.container.JettyServer;
import io.idempotence.it.container.ServletServer;
import io.idempotence.server.Idempotence;
import io.idempotence.server.redis.EmbeddedRedis;
import io.idempotence.server.redis.RedisIdempotenceStorage;
import io.idempotence.server.servlet.IdempotenceFilter;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Redis is killed or full at a step of a request (promise P6). */
class StorageFailureIT {
    private final String id = UUID.randomUUID().toString();
    private final AtomicInteger payments = new AtomicInteger();
    private final AtomicReference<Runnable> beforePayment = new AtomicReference<>(() -> {});
    private EmbeddedRedis redis;
    private Idempotence idempotence;
    private ServletServer provider;

    @BeforeEach
    void start() {
        redis = EmbeddedRedis.startPersistent();
        idempotence = Idempotence.over(RedisIdempotenceStorage.connect(redis.address()));
        provider = JettyServer.start(
                context -> {
                    IdempotenceFilter.install(context, idempotence, "/payments");
                    context.addServlet("payments", ServletServer.servlet((request, response) -> {
                                beforePayment.get().run();
                                response.setStatus(201);
                                String body = "payment " + payments.incrementAndGet();
                                response.getOutputStream().write(body.getBytes(StandardCharsets.UTF_8));
                            }))
                            .addMapping("/payments");
                },
                null);
    }

    @AfterEach
    void stop() {
        provider.close();
        idempotence.close();
        redis.close();
    }

    private HttpResponse<byte[]> pay() {
        return pay(id);
    }

    private HttpResponse<byte[]> pay(String id) {
        return post(provider.uri("/payments"), id, "{\"amount\":5}");
    }

    private static void assertUnavailable(HttpResponse<byte[]> refused) {
        assertThat(refused.statusCode()).isEqualTo(503);
        assertThat(refusal(refused)).isEqualTo("storage-unavailable");
        assertThat(refused.headers().firstValue("Retry-After")).contains("1");
        assertThat(text(refused)).contains("\"retryable\":true", "\"safeNewId\":false");
    }

    @Test
    void killedBeforeTheClaimNothingRuns() {
        redis.kill();
        assertUnavailable(pay());
        assertThat(payments).hasValue(0);

        redis.restart();
        assertThat(text(pay())).isEqualTo("payment 1");
        assertThat(replayed(pay())).isTrue();
        assertThat(payments).hasValue(1);
    }

    @Test
    void killedBetweenClaimAndCompletionTheRealResponseGoesOutAndIsReplayedLater() {
        beforePayment.set(redis::kill);
        HttpResponse<byte[]> first = pay();
        assertThat(first.statusCode()).isEqualTo(201);
        assertThat(text(first)).isEqualTo("payment 1");
        assertThat(refusal(pay())).isEqualTo("storage-unavailable");

        redis.restart();
        awaitReplayOf("payment 1");
        assertThat(payments).hasValue(1);
    }

    @Test
    void restartedEmptyBetweenClaimAndCompletionTheResponseIsStoredAnew() {
        beforePayment.set(() -> {
            redis.restart();
            try (var jedis = redis.jedis()) {
                jedis.flushAll();
            }
        });
        assertThat(text(pay())).isEqualTo("payment 1");
        // Until the response is stored anew, this Redis knows nothing of the payment.
        await().until(() -> {
            try (var jedis = redis.jedis()) {
                return jedis.dbSize() > 0;
            }
        });
        awaitReplayOf("payment 1");
        assertThat(payments).hasValue(1);
    }

    @Test
    void restartedAfterCompletionTheResponseIsStillThere() {
        assertThat(text(pay())).isEqualTo("payment 1");
        redis.restart();
        awaitReplayOf("payment 1");
        assertThat(payments).hasValue(1);
    }

    /** Under noeviction. */
    @Test
    void fullBetweenClaimAndCompletionTheResponseIsRecordedAndNothingNewRuns() {
        String another = UUID.randomUUID().toString();
        beforePayment.set(() -> {
            maxMemory("1");
            assertUnavailable(pay(another));
        });
        HttpResponse<byte[]> first = pay();
        assertThat(first.statusCode()).isEqualTo(201);
        assertThat(text(first)).isEqualTo("payment 1");

        assertThat(replayed(pay())).isTrue();
        assertThat(text(pay())).isEqualTo("payment 1");
        assertUnavailable(pay(another));
        assertThat(payments).hasValue(1);

        beforePayment.set(() -> {});
        maxMemory("0");
        // In progress for a moment: the claims that may have been stored in vain are given back.
        await().until(() -> pay(another).statusCode() == 201);
        assertThat(text(pay(another))).isEqualTo("payment 2");
        assertThat(payments).hasValue(2);
    }

    private void maxMemory(String bytes) {
        try (var jedis = redis.jedis()) {
            jedis.configSet("maxmemory", bytes);
        }
    }

    private void awaitReplayOf(String body) {
        AtomicReference<HttpResponse<byte[]>> retry = new AtomicReference<>();
        await().atMost(Duration.ofSeconds(30)).until(() -> {
            retry.set(pay());
            return retry.get().statusCode() == 201;
        });
        assertThat(replayed(retry.get())).isTrue();
        assertThat(text(retry.get())).isEqualTo(body);
    }
}
