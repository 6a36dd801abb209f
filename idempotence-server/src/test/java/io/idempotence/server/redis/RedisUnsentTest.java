package io.idempotence.server.redis;

import static io.idempotence.server.Refusals.refusalOf;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.awaitility.Awaitility.await;

import io.idempotence.IdempotenceId;
import io.idempotence.http.Refusal;
import io.idempotence.server.ExecutionRefusedException;
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
import java.util.concurrent.atomic.AtomicReference;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.UnifiedJedis;

/** Tests of which failed claims may have been written, and which certainly were not. */
@Tag("redis-7")
@Tag("jedis")
class RedisUnsentTest {
    private static final JedisClientConfig PATIENT =
            DefaultJedisClientConfig.builder().timeoutMillis(60_000).build();
    /** Of those whose replies are lost. Longer than a busy machine pauses. */
    private static final JedisClientConfig IMPATIENT =
            DefaultJedisClientConfig.builder().timeoutMillis(4_000).build();

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

    /** With one connection, which whoever holds it keeps. */
    private static RedisIdempotenceStorage connect(String addresses) {
        return RedisIdempotenceStorage.builder(addresses)
                .client(PATIENT)
                .pool(oneConnection())
                .build();
    }

    private static StorageUnavailableException failure(RedisIdempotenceStorage storage, StorageKey key) {
        return catchThrowableOfType(StorageUnavailableException.class, () -> storage.claim(Claims.request(key)));
    }

    /** What is returned ends when the connection is free again. */
    private Future<?> holdTheOnlyConnection(RedisIdempotenceStorage storage, Runnable holdReplies) {
        storage.find(key);
        holdReplies.run();
        AtomicReference<Thread> holder = new AtomicReference<>();
        Future<?> held = threads.submit(() -> {
            holder.set(Thread.currentThread());
            storage.find(key);
        });
        await().until(() -> holder.get() != null && isReading(holder.get()));
        assertThat(failure(storage, key)).hasMessageContaining("no free connection");
        return held;
    }

    private static boolean isReading(Thread thread) {
        return Stream.of(thread.getStackTrace())
                .anyMatch(frame -> frame.getClassName().equals("sun.nio.ch.NioSocketImpl")
                        && frame.getMethodName().equals("read"));
    }

    @Test
    @Execution(ExecutionMode.CONCURRENT)
    void aClaimThatFoundNoFreeConnectionIsCertainlyNotWritten() {
        try (RedisIdempotenceStorage storage = connect(wire.address())) {
            holdTheOnlyConnection(storage, wire::holdReplies);
            assertThat(failure(storage, key).nothingWritten()).isTrue();
            wire.letGo();
        }
    }

    @ParameterizedTest
    @Execution(ExecutionMode.CONCURRENT)
    @MethodSource("io.idempotence.server.redis.ApplicationsClients#ofOneServer")
    void aClaimThatFoundNoFreeConnectionOfTheApplicationIsCertainlyNotWritten(String type) {
        try (UnifiedJedis client = ApplicationsClients.oneServer(type, wire.port(), PATIENT, oneConnection());
                RedisIdempotenceStorage storage = RedisIdempotenceStorage.using(client)) {
            holdTheOnlyConnection(storage, wire::holdReplies);
            assertThat(failure(storage, key).nothingWritten()).isTrue();
            wire.letGo();
        }
    }

    private static int calls(Jedis jedis, String command) {
        Matcher stats = Pattern.compile("cmdstat_" + command + ":calls=(\\d+),").matcher(jedis.info("commandstats"));
        return stats.find() ? Integer.parseInt(stats.group(1)) : 0;
    }

    @Test
    @Execution(ExecutionMode.CONCURRENT)
    void anOverloadedPoolCausesNoFurtherClaimsAndLeavesNoTombstones() throws Exception {
        int requests = 8;
        try (RedisIdempotenceStorage storage = connect(wire.address());
                Idempotence idempotence = Idempotence.builder(storage)
                        .policy(IdempotencePolicy.defaults())
                        .build();
                Jedis jedis = redis.jedis()) {
            Future<?> holder = holdTheOnlyConnection(storage, wire::holdReplies);
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
            // If a probe has the only connection, it is refused, and nothing is sent.
            await().ignoreExceptionsInstanceOf(ExecutionRefusedException.class)
                    .until(() -> idempotence
                            .execute(IdempotenceId.of("after"), () -> "run")
                            .equals("run"));
            idempotence.close();

            // A claim and its completion. A probe may come as well: it sets a record between two deletions.
            int ofProbes = calls(jedis, "del") / 2;
            assertThat(calls(jedis, "set")).isEqualTo(2 + ofProbes);
            assertThat(jedis.dbSize()).isEqualTo(1);
        }
    }

    @Test
    @Execution(ExecutionMode.CONCURRENT)
    void aClaimWhoseConnectionIsRefusedIsCertainlyNotWritten() {
        try (RedisIdempotenceStorage storage = redis.connect()) {
            redis.kill();
            // The idle connection breaks: what was sent on it may have been executed.
            failure(storage, key);
            assertThat(failure(storage, key).nothingWritten()).isTrue();
        }
    }

    @Test
    @Execution(ExecutionMode.CONCURRENT)
    void aClaimWhoseReplyWasLostMayHaveBeenWritten() {
        try (RedisIdempotenceStorage storage = RedisIdempotenceStorage.builder(wire.address())
                        .client(IMPATIENT)
                        .build();
                RedisIdempotenceStorage other = redis.connect()) {
            Claims.claim(storage, Claims.newKey());
            wire.holdReplies();
            assertThat(failure(storage, key).nothingWritten()).isFalse();
            assertThat(other.find(key)).isPresent();
        }
    }

    @ParameterizedTest
    @Execution(ExecutionMode.CONCURRENT)
    @MethodSource("io.idempotence.server.redis.ApplicationsClients#ofOneServer")
    void aClaimWhoseReplyTheApplicationsClientLostMayHaveBeenWritten(String type) {
        try (UnifiedJedis client =
                        ApplicationsClients.oneServer(type, wire.port(), IMPATIENT, EmbeddedRedis.patientPool());
                RedisIdempotenceStorage storage = RedisIdempotenceStorage.using(client)) {
            Claims.claim(storage, Claims.newKey());
            wire.holdReplies();
            assertThat(failure(storage, key).nothingWritten()).isFalse();
        }
    }

    @Test
    @Execution(ExecutionMode.CONCURRENT)
    void aClaimThatAFullRedisRefusedIsNoOutage() {
        try (RedisIdempotenceStorage storage = redis.connect();
                Jedis jedis = redis.jedis()) {
            jedis.configSet("maxmemory", "1");
            assertThat(failure(storage, key).nothingWritten()).isTrue();
            assertThat(failure(storage, key).certainty()).isEqualTo(StorageUnavailableException.Certainty.REFUSED);
        }
    }

    @Test
    @Execution(ExecutionMode.CONCURRENT)
    void aClaimInAClusterThatFoundNoFreeConnectionIsCertainlyNotWritten() {
        try (EmbeddedRedisCluster cluster = EmbeddedRedisCluster.start();
                RedisIdempotenceStorage storage = connect(cluster.addresses())) {
            holdTheOnlyConnection(storage, () -> cluster.nodes().forEach(EmbeddedRedis::pause));
            assertThat(failure(storage, key).nothingWritten()).isTrue();
            cluster.nodes().forEach(EmbeddedRedis::resume);
        }
    }
}
