package io.idempotence.it.fault;

import static io.idempotence.it.container.Http.post;
import static io.idempotence.it.container.Http.refusal;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.it.container.Http;
import io.idempotence.it.container.ServletServer;
import io.idempotence.it.container.TomcatServer;
import io.idempotence.server.Idempotence;
import io.idempotence.server.redis.DelayProxy;
import io.idempotence.server.redis.RedisIdempotenceStorage;
import io.idempotence.server.redis.RedisOfAClass;
import io.idempotence.server.servlet.IdempotenceFilter;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;

/** A storage that takes connections and never responds, behind a Tomcat with its default of 200 threads. */
class StorageOutageIT {
    @RegisterExtension
    static final RedisOfAClass redis = new RedisOfAClass();

    private static final int THREADS_OF_TOMCAT = 200;

    @Test
    @DisplayName("P6: a storage that never responds leaves endpoints that are not protected their threads")
    void aStorageThatNeverRespondsLeavesOtherEndpointsTheirThreads() throws Exception {
        try (DelayProxy wire = new DelayProxy(redis.server().port());
                Idempotence idempotence = Idempotence.builder(storageThatMayHoldEveryThread(wire))
                        .namespace("t-" + UUID.randomUUID())
                        .build();
                ServletServer server = TomcatServer.start(
                        context -> {
                            IdempotenceFilter.install(context, idempotence, "/payments");
                            context.addServlet(
                                            "handler",
                                            ServletServer.servlet((request, response) -> response.setStatus(201)))
                                    .addMapping("/payments");
                            context.addServlet("ping", ServletServer.servlet((request, response) -> {}))
                                    .addMapping("/ping");
                        },
                        null)) {
            assertThat(post(server.uri("/payments"), UUID.randomUUID().toString(), "{}")
                            .statusCode())
                    .isEqualTo(201);
            wire.holdRequests();

            List<CompletableFuture<HttpResponse<byte[]>>> payments = paymentsUntilOneIsRefused(server);
            assertThat(payments).filteredOn(payment -> !payment.isDone()).hasSizeLessThan(THREADS_OF_TOMCAT);
            HttpResponse<byte[]> refused = payments.stream()
                    .filter(CompletableFuture::isDone)
                    .findFirst()
                    .orElseThrow()
                    .join();
            assertThat(refused.statusCode()).isEqualTo(503);
            assertThat(refusal(refused)).isEqualTo("storage-unavailable");
            assertThat(refused.headers().firstValue("Retry-After")).isPresent();
            assertThat(Http.send(Http.request("GET", server.uri("/ping"), null, ""))
                            .statusCode())
                    .isEqualTo(200);
            assertThat(payments).anyMatch(payment -> !payment.isDone());

            wire.letGo();
            await().until(() -> post(server.uri("/payments"), UUID.randomUUID().toString(), "{}")
                            .statusCode()
                    == 201);
        }
    }

    /** Neither its pool nor its timeouts release a thread while the test runs. */
    private static RedisIdempotenceStorage storageThatMayHoldEveryThread(DelayProxy wire) {
        ConnectionPoolConfig pool = new ConnectionPoolConfig();
        pool.setMaxTotal(2 * THREADS_OF_TOMCAT);
        return RedisIdempotenceStorage.builder(wire.address())
                .pool(pool)
                .client(DefaultJedisClientConfig.builder()
                        .socketTimeoutMillis((int) Duration.ofMinutes(2).toMillis())
                        .build())
                .build();
    }

    /** Sends payments one after another, without waiting for their responses, until there is one, or more than Tomcat has threads. */
    private static List<CompletableFuture<HttpResponse<byte[]>>> paymentsUntilOneIsRefused(ServletServer server) {
        List<CompletableFuture<HttpResponse<byte[]>>> payments = new ArrayList<>();
        await().pollDelay(Duration.ZERO).pollInterval(Duration.ofMillis(10)).until(() -> {
            payments.add(Http.sendAsync(Http.request(
                    "POST", server.uri("/payments"), UUID.randomUUID().toString(), "{}")));
            return payments.stream().anyMatch(CompletableFuture::isDone) || payments.size() == 2 * THREADS_OF_TOMCAT;
        });
        return payments;
    }
}
