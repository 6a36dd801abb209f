package io.idempotence.server.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.StorageUnavailableException;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.UnifiedJedis;

/** Tests of which failures close connections that have not failed themselves. */
@Tag("redis-7")
@Tag("jedis")
class RedisConnectionsTest {
    private static final int CONNECTIONS = 4;
    private static final int MANY = 30;
    private static final JedisClientConfig IMPATIENT = DefaultJedisClientConfig.builder()
            .connectionTimeoutMillis(20_000)
            .socketTimeoutMillis(4_000)
            .build();

    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final CountDownLatch end = new CountDownLatch(1);
    private final AtomicBoolean nextResponseIsLost = new AtomicBoolean();
    private volatile boolean responsesOfNewConnectionsOnly;
    private EmbeddedRedis redis;
    private DelayProxy wire;

    @BeforeEach
    void start() {
        redis = EmbeddedRedis.start();
        wire = new DelayProxy(redis.port(), this::tap);
    }

    @AfterEach
    void stop() throws IOException {
        end.countDown();
        threads.shutdownNow();
        wire.close();
        redis.close();
    }

    private DelayProxy.Tap tap() {
        boolean isNew = responsesOfNewConnectionsOnly;
        return (requests, bytes, length) -> {
            boolean isHeld = responsesOfNewConnectionsOnly && !isNew;
            if (!requests && (isHeld || nextResponseIsLost.compareAndSet(true, false))) {
                awaitEnd();
            }
        };
    }

    private void awaitEnd() {
        try {
            end.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private RedisIdempotenceStorage impatient() {
        return RedisIdempotenceStorage.builder(wire.address())
                .client(IMPATIENT)
                .pool(EmbeddedRedis.patientPool())
                .build();
    }

    /** All of them are idle afterwards. A call that shares the round trip of an earlier one opens none, and is followed by another. */
    private void openConnections(RedisIdempotenceStorage storage) throws Exception {
        wire.holdRequests();
        List<Future<?>> calls = new ArrayList<>();
        await().pollDelay(Duration.ZERO).pollInterval(Duration.ofMillis(20)).until(() -> {
            calls.add(threads.submit(() -> storage.find(Claims.newKey())));
            return wire.connections() >= CONNECTIONS;
        });
        wire.letGo();
        for (Future<?> call : calls) {
            call.get();
        }
    }

    private static void assertRefused(RedisIdempotenceStorage storage, String why) {
        assertThatThrownBy(() -> storage.claim(Claims.request(Claims.newKey())))
                .isInstanceOf(StorageUnavailableException.class)
                .hasMessageContaining(why);
    }

    @Test
    void oneSlowResponseOfALiveServerClosesNoOtherConnection() throws Exception {
        try (RedisIdempotenceStorage storage = impatient()) {
            openConnections(storage);
            int opened = wire.connections();
            nextResponseIsLost.set(true);
            Future<?> slow = threads.submit(() -> assertRefused(storage, "no reply in time"));
            await().until(() -> !nextResponseIsLost.get());
            while (!slow.isDone()) {
                storage.find(Claims.newKey());
            }
            slow.get();

            Claims.claim(storage, Claims.newKey());
            // The pool replaces the one that failed.
            assertThat(wire.connections()).isLessThanOrEqualTo(opened + 1);
        }
    }

    /** Its host is gone without a word, and another one has its address. */
    @Test
    void connectionsToASilentServerAreNotTriedOneAfterTheOther() throws Exception {
        try (RedisIdempotenceStorage storage = impatient()) {
            openConnections(storage);
            responsesOfNewConnectionsOnly = true;

            assertRefused(storage, "no reply in time");

            Claims.claim(storage, Claims.newKey());
        }
    }

    // ---- the application's client

    @ParameterizedTest
    @MethodSource("io.idempotence.server.redis.ApplicationsClients#ofOneServer")
    void theApplicationsConnectionsToAPrimaryThatLacksReplicasOrIsLoadingStayOpen(String type) {
        try (UnifiedJedis client = ApplicationsClients.oneServer(type, wire.port());
                RedisIdempotenceStorage storage = RedisIdempotenceStorage.using(client);
                Jedis jedis = redis.jedis()) {
            Claims.claim(storage, Claims.newKey());
            int opened = wire.connections();
            jedis.configSet("min-replicas-to-write", "1");
            for (int i = 0; i < 3; i++) {
                assertRefused(storage, "NOREPLICAS");
            }
            jedis.configSet("min-replicas-to-write", "0");
            Claims.claim(storage, Claims.newKey());
            assertThat(wire.connections()).isEqualTo(opened);
        }
    }

    @ParameterizedTest
    @MethodSource("io.idempotence.server.redis.ApplicationsClients#ofOneServer")
    void theApplicationsConnectionsToAReplicaAreNotClosedAtEveryRequest(String type) {
        try (UnifiedJedis client = ApplicationsClients.oneServer(type, wire.port());
                RedisIdempotenceStorage storage = RedisIdempotenceStorage.using(client);
                Jedis jedis = redis.jedis()) {
            Claims.claim(storage, Claims.newKey());
            jedis.replicaof("127.0.0.1", 1);
            for (int i = 0; i < MANY; i++) {
                assertRefused(storage, "READONLY");
            }
            assertThat(wire.connections()).isLessThan(MANY / 2);
        }
    }
}
