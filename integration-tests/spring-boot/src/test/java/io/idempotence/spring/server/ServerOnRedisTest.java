package io.idempotence.spring.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.IdempotenceId;
import io.idempotence.server.IdempotenceAdmin;
import io.idempotence.server.redis.EmbeddedRedis;
import io.idempotence.server.storage.IdempotenceStorage;
import java.net.http.HttpResponse;
import java.util.UUID;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.ConfigurableApplicationContext;
import redis.clients.jedis.Jedis;

/** An application with the dependency, a Redis, and no line of code: its handlers are protected. */
@ExtendWith(OutputCaptureExtension.class)
class ServerOnRedisTest {
    private static EmbeddedRedis redis;
    private static ConfigurableApplicationContext application;
    private static Caller caller;
    private static Caller operator;

    private final String id = UUID.randomUUID().toString();

    @BeforeAll
    static void start(CapturedOutput output) {
        redis = EmbeddedRedis.start();
        application = Orders.start(
                "--spring.data.redis.port=" + redis.port(),
                // Longer than a busy machine pauses.
                "--idempotence.server.redis.timeout=4s",
                "--spring.data.redis.host=127.0.0.1",
                "--management.health.redis.enabled=false",
                "--management.server.port=0");
        caller = Caller.of(application);
        operator = Caller.ofManagement(application);
        assertThat(output)
                .contains(
                        "Idempotence: filter on /*, an ID is optional; records in the RedisConnectionFactory 'redisConnectionFactory', chosen"
                                + " automatically; namespace 'orders' (spring.application.name)")
                .containsOnlyOnce("a restart can forget claims; set appendonly yes");
    }

    @AfterAll
    static void stop() {
        application.close();
        redis.close();
    }

    @Test
    void aRetryGetsTheResponseOfTheFirstAttempt() {
        HttpResponse<String> first = caller.post("/open/orders", id);
        HttpResponse<String> retry = caller.post("/open/orders", id);

        assertThat(first.statusCode()).isEqualTo(200);
        assertThat(retry.body()).isEqualTo(first.body());
        assertThat(retry.headers().firstValue("Idempotent-Replayed")).contains("true");
        try (Jedis jedis = redis.jedis()) {
            assertThat(jedis.keys("idem:orders:*")).isNotEmpty();
        }
    }

    @Test
    void aRequestWithoutAnIdPasses() {
        assertThat(caller.post("/open/orders", "").body())
                .isNotEqualTo(caller.post("/open/orders", "").body());
    }

    @Test
    void theErrorPageIsReplayed() {
        HttpResponse<String> first = caller.post("/open/refused", id);
        HttpResponse<String> retry = caller.post("/open/refused", id);

        assertThat(first.statusCode()).isEqualTo(409);
        assertThat(first.body()).contains("\"status\":409");
        assertThat(retry.statusCode()).isEqualTo(409);
        assertThat(retry.body()).isEqualTo(first.body());
        assertThat(retry.headers().firstValue("Idempotent-Replayed")).contains("true");
    }

    @Test
    void aCallerIsAuthenticatedBeforeAnythingIsClaimedOrReplayed() {
        assertThat(caller.post("/orders", id).statusCode()).isEqualTo(401);

        HttpResponse<String> first = caller.postAs(Orders.USER, Orders.PASSWORD, "/orders", id);
        assertThat(first.statusCode()).isEqualTo(201);
        assertThat(first.headers().firstValue("Idempotent-Replayed")).isEmpty();

        assertThat(caller.post("/orders", id).statusCode()).isEqualTo(401);
        HttpResponse<String> retry = caller.postAs(Orders.USER, Orders.PASSWORD, "/orders", id);
        assertThat(retry.body()).isEqualTo(first.body());
        assertThat(retry.headers().firstValue("Location"))
                .isEqualTo(first.headers().firstValue("Location"));
    }

    @Test
    void springsFiltersForFormsAndRequestsStillWork() {
        String first = caller.form("PUT", "/open/names", id, "name=%C3%A4").body();
        String retry = caller.form("PUT", "/open/names", id, "name=%C3%A4").body();

        assertThat(first).startsWith("PUT ä true ").isEqualTo(retry);
        assertThat(caller.form("PUT", "/open/names", id, "name=b").statusCode()).isEqualTo(422);
    }

    @Test
    void aHiddenMethodIsTheMethodOfTheRequest() {
        String first = caller.form("POST", "/open/method", id, "_method=delete").body();
        String retry = caller.form("POST", "/open/method", id, "_method=delete").body();

        assertThat(first).startsWith("DELETE ").isEqualTo(retry);
    }

    @Test
    void metersCountWhatHappened() {
        caller.post("/open/orders", id);

        assertThat(operator.get("/actuator/metrics/idempotence.server.events?tag=event:claimed")
                        .body())
                .doesNotContain("\"value\":0.0");
        assertThat(operator.get("/actuator/metrics/idempotence.server.storage.available")
                        .body())
                .contains("\"value\":1.0");
    }

    @Test
    void whileRedisIsDownRequestsGet503AndHealthReportsIt() {
        assertThat(health().body()).contains("\"idempotence\":{").contains("\"storage\":\"redis\"");
        redis.kill();
        try {
            HttpResponse<String> refused = caller.post("/open/orders", id);
            assertThat(refused.statusCode()).isEqualTo(503);
            assertThat(refused.body()).contains("storage-unavailable");
            assertThat(health().statusCode()).isEqualTo(503);
            assertThat(health().body()).containsPattern("\"idempotence\":\\{[^}]*\"reason\":\"Redis");
        } finally {
            redis.restart();
        }
        await().until(() -> caller.post("/open/orders", id).statusCode() == 200);
        await().until(() -> health().statusCode() == 200);
    }

    @Test
    void theManagementPortIsNotProtected() {
        operator.post("/actuator/loggers/some", id);

        assertThat(operator.post("/actuator/loggers/some", id).headers().firstValue("Idempotent-Replayed"))
                .isEmpty();
        try (Jedis jedis = redis.jedis()) {
            assertThat(jedis.exists(IdempotenceAdmin.of(application.getBean(IdempotenceStorage.class), "orders")
                            .requestKey(IdempotenceId.of(id), "")
                            .value()))
                    .isFalse();
        }
    }

    private static HttpResponse<String> health() {
        return operator.get("/actuator/health");
    }
}
