package io.idempotence.server.redis;

import static io.idempotence.server.Refusals.refusalOf;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.awaitility.Awaitility.await;

import io.idempotence.IdempotenceId;
import io.idempotence.http.Refusal;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.UnifiedJedis;

/** Which failed claims may have been written, and which certainly were not. */
@Tag("redis-7")
@Tag("jedis")
class RedisUnsentTest {
    private final StorageKey key = Claims.newKey();
    private final ExecutorService threads = Executors.newFixedThreadPool(8);
    private EmbeddedRedis redis;
    private DelayProxy wire;

    @BeforeEach
    void start() {
        redis = EmbeddedRedis.start();
        wire = new DelayProxy(redis.port());
    }

    @AfterEach
    void stop() throws IOException {
        threads.shutdownNow();
        wire.close();
        redis.close();
    }

    private static ConnectionPoolConfig oneConnection() {
        ConnectionPoolConfig pool = new ConnectionPoolConfig();
        pool.setMaxTotal(1);
        pool.setMaxWait(Duration.ofMillis(50));
        return pool;
    }

    private static StorageUnavailableException failure(RedisIdempotenceStorage storage, StorageKey key) {
        return catchThrowableOfType(StorageUnavailableException.class, () -> storage.claim(Claims.request(key)));
    }

    /** What is returned ends when the connection is free again. */
    private Future<?> holdTheOnlyConnection(RedisIdempotenceStorage storage) {
        storage.find(key);
        wire.holdReplies();
        Future<?> holder = threads.submit(() -> storage.find(key));
        await().until(() -> failure(storage, key).getMessage().contains("no free connection"));
        return holder;
    }

    @Test
    void aClaimThatFoundNoFreeConnectionIsCertainlyNotWritten() {
        try (RedisIdempotenceStorage storage = RedisIdempotenceStorage.connect(wire.address(), oneConnection())) {
            holdTheOnlyConnection(storage);
            assertThat(failure(storage, key).nothingWritten()).isTrue();
            wire.letGo();
        }
    }

    @ParameterizedTest
    @MethodSource("io.idempotence.server.redis.ApplicationsClients#ofOneServer")
    void aClaimThatFoundNoFreeConnectionOfTheApplicationIsCertainlyNotWritten(String type) {
        try (UnifiedJedis client = ApplicationsClients.oneServer(type, wire.port(), oneConnection());
                RedisIdempotenceStorage storage = RedisIdempotenceStorage.using(client)) {
            holdTheOnlyConnection(storage);
            assertThat(failure(storage, key).nothingWritten()).isTrue();
            wire.letGo();
        }
    }

    @Test
    void anOverloadedPoolCausesNoFurtherScriptsAndLeavesNoTombstones() throws Exception {
        int requests = 8;
        try (RedisIdempotenceStorage storage = RedisIdempotenceStorage.connect(wire.address(), oneConnection());
                Idempotence idempotence = Idempotence.builder(storage)
                        .policy(IdempotencePolicy.defaults())
                        .build();
                Jedis jedis = redis.jedis()) {
            Future<?> holder = holdTheOnlyConnection(storage);
            jedis.configResetStat();
            List<Future<Refusal>> refused = new ArrayList<>();
            for (int i = 0; i < requests; i++) {
                IdempotenceId id = IdempotenceId.of("order-" + i);
                refused.add(threads.submit(() -> refusalOf(() -> idempotence.execute(id, () -> "never"))));
            }
            for (Future<Refusal> each : refused) {
                assertThat(each.get()).isEqualTo(Refusal.STORAGE_UNAVAILABLE);
            }
            wire.letGo();
            holder.get();
            // This one comes behind whatever a background thread may have to send.
            assertThat(idempotence.execute(IdempotenceId.of("after"), () -> "run"))
                    .isEqualTo("run");
            idempotence.close();

            assertThat(jedis.info("commandstats")).contains("cmdstat_evalsha:calls=2,");
            assertThat(jedis.dbSize()).isEqualTo(1);
        }
    }

    @Test
    void aClaimWhoseConnectionIsRefusedIsCertainlyNotWritten() {
        try (RedisIdempotenceStorage storage = RedisIdempotenceStorage.connect(redis.address())) {
            redis.kill();
            // The idle connection breaks: what was sent on it may have been executed.
            failure(storage, key);
            assertThat(failure(storage, key).nothingWritten()).isTrue();
        }
    }

    @Test
    void aClaimWhoseReplyWasLostMayHaveBeenWritten() {
        try (RedisIdempotenceStorage storage = RedisIdempotenceStorage.connect(wire.address());
                RedisIdempotenceStorage other = RedisIdempotenceStorage.connect(redis.address())) {
            Claims.claim(storage, Claims.newKey());
            wire.holdReplies();
            assertThat(failure(storage, key).nothingWritten()).isFalse();
            assertThat(other.find(key)).isPresent();
        }
    }

    @ParameterizedTest
    @MethodSource("io.idempotence.server.redis.ApplicationsClients#ofOneServer")
    void aClaimWhoseReplyTheApplicationsClientLostMayHaveBeenWritten(String type) {
        try (UnifiedJedis client = ApplicationsClients.oneServer(type, wire.port());
                RedisIdempotenceStorage storage = RedisIdempotenceStorage.using(client)) {
            Claims.claim(storage, Claims.newKey());
            wire.holdReplies();
            assertThat(failure(storage, key).nothingWritten()).isFalse();
        }
    }

    @Test
    void aClaimThatAFullRedisRefusedIsNoOutage() {
        try (RedisIdempotenceStorage storage = RedisIdempotenceStorage.connect(redis.address());
                Jedis jedis = redis.jedis()) {
            jedis.configSet("maxmemory", "1");
            assertThat(failure(storage, key).nothingWritten()).isTrue();
            assertThat(failure(storage, key).certainty()).isEqualTo(StorageUnavailableException.Certainty.REFUSED);
        }
    }

    @Test
    void aClaimInAClusterThatFoundNoFreeConnectionIsCertainlyNotWritten() {
        try (EmbeddedRedisCluster cluster = EmbeddedRedisCluster.start();
                RedisIdempotenceStorage storage =
                        RedisIdempotenceStorage.connect(cluster.addresses(), oneConnection())) {
            storage.find(key);
            cluster.nodes().forEach(EmbeddedRedis::pause);
            threads.submit(() -> storage.find(key));
            await().until(() -> failure(storage, key).getMessage().contains("no free connection"));
            assertThat(failure(storage, key).nothingWritten()).isTrue();
            cluster.nodes().forEach(EmbeddedRedis::resume);
        }
    }
}
