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
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** A storage that takes connections and never responds, behind a Tomcat with its default of 200 threads. */
@DisplayName("An outage of the storage")
class StorageOutageIT {
    @RegisterExtension
    static final RedisOfAClass redis = new RedisOfAClass();

    private static final int REQUESTS = 350;

    @Test
    @DisplayName(
            "P6: an unreachable storage leaves endpoints that are not protected their threads, and is back within a second")
    void anUnreachableStorageLeavesOtherEndpointsTheirThreads() throws Exception {
        AtomicInteger runs = new AtomicInteger();
        try (DelayProxy wire = new DelayProxy(redis.server().port());
                Idempotence idempotence = Idempotence.builder(RedisIdempotenceStorage.connect(wire.address()))
                        .namespace("t-" + UUID.randomUUID())
                        .build();
                ServletServer server = TomcatServer.start(
                        context -> {
                            IdempotenceFilter.install(context, idempotence, "/payments");
                            context.addServlet("handler", ServletServer.servlet((request, response) -> {
                                        runs.incrementAndGet();
                                        response.setStatus(201);
                                    }))
                                    .addMapping("/payments");
                            context.addServlet("ping", ServletServer.servlet((request, response) -> {}))
                                    .addMapping("/ping");
                        },
                        null)) {
            assertThat(pay(server).statusCode()).isEqualTo(201);
            wire.holdRequests();
            List<CompletableFuture<HttpResponse<byte[]>>> payments = new ArrayList<>();
            List<CompletableFuture<Duration>> pings = new ArrayList<>();
            paced(REQUESTS, Duration.ofMillis(10), n -> {
                payments.add(Http.sendAsync(Http.request(
                        "POST", server.uri("/payments"), UUID.randomUUID().toString(), "{}")));
                if (n % 10 == 0) {
                    pings.add(ping(server));
                }
            });

            assertThat(pings).allSatisfy(ping -> assertThat(ping.join()).isLessThan(Duration.ofSeconds(1)));
            assertThat(payments).allSatisfy(payment -> {
                assertThat(payment.join().statusCode()).isEqualTo(503);
                assertThat(refusal(payment.join())).isEqualTo("storage-unavailable");
                assertThat(payment.join().headers().firstValue("Retry-After")).isPresent();
            });
            long start = System.nanoTime();
            assertThat(pay(server).statusCode()).isEqualTo(503);
            assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(Duration.ofSeconds(1));
            assertThat(runs).hasValue(1);

            wire.letGo();
            await().pollInterval(Duration.ofMillis(20))
                    .atMost(Duration.ofSeconds(1))
                    .until(() -> pay(server).statusCode() == 201);
        }
    }

    private static HttpResponse<byte[]> pay(ServletServer server) {
        return post(server.uri("/payments"), UUID.randomUUID().toString(), "{}");
    }

    private static CompletableFuture<Duration> ping(ServletServer server) {
        long start = System.nanoTime();
        return Http.sendAsync(Http.request("GET", server.uri("/ping"), null, ""))
                .thenApply(response -> Duration.ofNanos(System.nanoTime() - start));
    }

    /** Does something a number of times, at a rate that does not depend on how long it takes. */
    private static void paced(int times, Duration every, java.util.function.IntConsumer step) throws Exception {
        ScheduledExecutorService clock = Executors.newSingleThreadScheduledExecutor();
        CountDownLatch left = new CountDownLatch(times);
        AtomicInteger n = new AtomicInteger();
        ScheduledFuture<?> ticks = clock.scheduleAtFixedRate(
                () -> {
                    if (n.get() < times) {
                        step.accept(n.getAndIncrement());
                        left.countDown();
                    }
                },
                0,
                every.toNanos(),
                TimeUnit.NANOSECONDS);
        left.await();
        ticks.cancel(false);
        clock.shutdown();
    }
}
