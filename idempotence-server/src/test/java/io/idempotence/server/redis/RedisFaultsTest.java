package io.idempotence.server.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import io.idempotence.server.storage.WriteResult;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.UnifiedJedis;

/** Tests of what callers see when Redis fails. */
@Tag("redis-7")
@Tag("jedis")
class RedisFaultsTest {
    private static final JedisClientConfig IMPATIENT =
            DefaultJedisClientConfig.builder().timeoutMillis(3_000).build();

    /** More than a busy machine needs, and less than a call that waits for a reply or a connection would take. */
    private static final Duration BOUND = Duration.ofSeconds(30);

    private final StorageKey key = Claims.newKey();

    @Test
    void deadRedisIsUnavailableQuicklyAndTheFirstCallAfterItsRestartSucceeds() throws Exception {
        try (EmbeddedRedis redis = EmbeddedRedis.startPersistent();
                RedisIdempotenceStorage storage = redis.connect()) {
            openManyConnections(redis, storage);
            redis.kill();

            long start = System.nanoTime();
            assertUnavailable(() -> storage.claim(Claims.request(key)), "no connection");
            assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(BOUND);

            redis.restart();
            assertThat(storage.claim(Claims.request(key))).isInstanceOf(ClaimResult.Claimed.class);
        }
    }

    @Test
    void oneRetryIsEnoughAfterARestartThatNobodyNoticed() throws Exception {
        try (EmbeddedRedis redis = EmbeddedRedis.start();
                RedisIdempotenceStorage storage = redis.connect()) {
            openManyConnections(redis, storage);
            redis.restart();

            ClaimRequest request = Claims.request(key);
            orUnavailable(() -> storage.claim(request));
            assertThat(storage.claim(request)).isInstanceOf(ClaimResult.Claimed.class);
        }
    }

    private void openManyConnections(EmbeddedRedis redis, RedisIdempotenceStorage storage) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(8);
        List<Future<?>> done = new ArrayList<>();
        CountDownLatch sent = new CountDownLatch(8);
        redis.pause();
        for (int i = 0; i < 8; i++) {
            done.add(threads.submit(() -> {
                sent.countDown();
                storage.find(key);
            }));
        }
        sent.await();
        redis.resume();
        for (Future<?> future : done) {
            future.get();
        }
        threads.shutdown();
    }

    @Test
    void persistentRedisRemembersEveryRecordOverAKill() {
        StorageKey completedKey = Claims.newKey();
        StorageKey releasedKey = Claims.newKey();
        try (EmbeddedRedis redis = EmbeddedRedis.startPersistent();
                RedisIdempotenceStorage storage = redis.connect()) {
            Claim claim = Claims.claim(storage, key);
            storage.complete(Claims.claim(storage, completedKey), new byte[] {1, 0, -1}, Claims.RETENTION);
            storage.release(Claims.claim(storage, releasedKey), Claims.RETENTION);
            redis.restart();
            orUnavailable(() -> storage.find(key));

            assertThat(storage.claim(Claims.request(key))).isInstanceOf(ClaimResult.InProgress.class);
            assertThat(storage.claim(Claims.request(completedKey)))
                    .isInstanceOfSatisfying(
                            ClaimResult.Completed.class,
                            completed -> assertThat(completed.result()).containsExactly(1, 0, -1));
            assertThat(Claims.claim(storage, releasedKey).fence()).isEqualTo(2);
            assertThat(storage.complete(claim, new byte[2], Claims.RETENTION)).isEqualTo(new WriteResult.Done());
            assertThat(storage.find(key).orElseThrow().retentionLeft()).isGreaterThan(Claims.RETENTION.minusMinutes(1));
        }
    }

    @Test
    void fullRedisRefusesNewClaimsButRecordsWhatWasDone() {
        StorageKey second = Claims.newKey();
        StorageKey third = Claims.newKey();
        StorageKey lost = Claims.newKey();
        try (EmbeddedRedis redis = EmbeddedRedis.start("--maxmemory-policy", "noeviction");
                RedisIdempotenceStorage storage = redis.connect();
                Jedis jedis = redis.jedis()) {
            Claim toComplete = Claims.claim(storage, key);
            Claim toRelease = Claims.claim(storage, second);
            Claim toMark = Claims.claim(storage, third);
            Claim vanished = Claims.claim(storage, lost);
            Claim provisional = Claims.claim(storage, Claims.newKey());
            storage.delete(lost);
            jedis.configSet("maxmemory", "1");

            assertUnavailable(() -> storage.claim(Claims.request(Claims.newKey())), "OOM");
            assertThat(storage.renew(toComplete, Claims.LEASE)).isEqualTo(new WriteResult.Done());
            assertThat(storage.complete(toComplete, new byte[5_000], Claims.RETENTION))
                    .isEqualTo(new WriteResult.Done());
            assertThat(storage.release(toRelease, Claims.RETENTION)).isEqualTo(new WriteResult.Done());
            assertThat(storage.markUnknown(toMark, Claims.RETENTION)).isEqualTo(new WriteResult.Done());
            assertThat(storage.complete(vanished, new byte[9], Claims.RETENTION))
                    .isEqualTo(new WriteResult.StoredAfterLoss());
            assertThat(storage.completeProvisionally(provisional, new byte[5_000], Claims.RETENTION))
                    .isEqualTo(new WriteResult.Done());
            assertThat(storage.complete(provisional, new byte[9_000], Claims.RETENTION))
                    .isEqualTo(new WriteResult.Done());

            assertThat(storage.delete(Claims.newKey())).as("a probe").isFalse();

            assertThat(storage.claim(Claims.request(key))).isInstanceOf(ClaimResult.Completed.class);
            assertThat(storage.find(lost).orElseThrow().state()).isEqualTo(State.COMPLETED);
            assertUnavailable(() -> storage.claim(Claims.request(second)), "OOM");
        }
    }

    @Test
    @DisplayName("T2, T21: a full Redis grants a claim that it has once more, so that it can be given back")
    void fullRedisGrantsAClaimThatItHas() {
        StorageKey abandoned = Claims.newKey();
        try (EmbeddedRedis redis = EmbeddedRedis.start("--maxmemory-policy", "noeviction");
                RedisIdempotenceStorage storage = redis.connect();
                Jedis jedis = redis.jedis()) {
            Claims.claim(storage, abandoned, Claims.SHORT);
            Awaitility.await().until(() -> storage.find(abandoned).orElseThrow().state() == State.ABANDONED);
            ClaimRequest first = Claims.request(key);
            ClaimRequest takeOver = Claims.takeOver(abandoned);
            storage.claim(first);
            storage.claim(takeOver);
            jedis.configSet("maxmemory", "1");

            for (ClaimRequest request : List.of(first, takeOver)) {
                assertThat(storage.claim(request)).isInstanceOfSatisfying(ClaimResult.Claimed.class, again -> {
                    assertThat(again.takenOver()).isEqualTo(request == takeOver);
                    assertThat(storage.release(again.claim(), Claims.RETENTION)).isEqualTo(new WriteResult.Done());
                });
            }
        }
    }

    @Test
    void replicaIsUnavailableForClaims() {
        try (EmbeddedRedis redis = EmbeddedRedis.start();
                RedisIdempotenceStorage storage = redis.connect();
                Jedis jedis = redis.jedis()) {
            Claim claim = Claims.claim(storage, key);
            jedis.replicaof("127.0.0.1", 1);

            assertUnavailable(() -> storage.claim(Claims.request(Claims.newKey())), "READONLY");
            assertUnavailable(() -> storage.complete(claim, new byte[1], Claims.RETENTION), "READONLY");
            assertUnavailable(() -> storage.delete(key), "READONLY");
        }
    }

    @Test
    void silentRedisIsUnavailableAfterTheTimeout() {
        try (EmbeddedRedis redis = EmbeddedRedis.start();
                RedisIdempotenceStorage storage = RedisIdempotenceStorage.builder(redis.address())
                        .client(IMPATIENT)
                        .build()) {
            ClaimRequest request = Claims.request(key);
            redis.pause();
            long start = System.nanoTime();
            assertUnavailable(() -> storage.claim(request), "no reply in time");
            assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(Duration.ofSeconds(20));
            redis.resume();

            // The claim may have arrived although its reply was lost: the same owner may run (T2).
            assertThat(storage.claim(request)).isInstanceOf(ClaimResult.Claimed.class);
        }
    }

    private static void assumeThatTheDriverClosesConnectionsThatWrite() {
        assumeThat(System.getProperty("idempotence.test.jedis", ""))
                .as("a version that can close a connection that writes")
                .doesNotStartWith("6.");
    }

    /** The driver writes without a timeout. */
    @Tag("all") // takes half a minute; RedisTlsTest has the same over TLS
    @Test
    void aLargeCompletionIsUnavailableInABoundedTime() throws Exception {
        assumeThatTheDriverClosesConnectionsThatWrite();
        ConnectionPoolConfig two = new ConnectionPoolConfig();
        two.setMaxTotal(2);
        try (EmbeddedRedis redis = EmbeddedRedis.start();
                RedisIdempotenceStorage storage = RedisIdempotenceStorage.builder(redis.address())
                        .pool(two)
                        .client(IMPATIENT)
                        .build()) {
            Claim claim = Claims.claim(storage, key);
            byte[] large = new byte[32 << 20];
            redis.pause();
            FutureTask<WriteResult> completion =
                    new FutureTask<>(() -> storage.complete(claim, large, Claims.RETENTION));
            new Thread(completion).start();

            Awaitility.await().until(() -> {
                assertThatThrownBy(() -> storage.renew(claim, Claims.LEASE))
                        .isInstanceOf(StorageUnavailableException.class);
                return completion.isDone();
            });
            assertThatThrownBy(completion::get)
                    .hasCauseInstanceOf(StorageUnavailableException.class)
                    .hasRootCauseInstanceOf(SocketTimeoutException.class);

            redis.resume();
            Awaitility.await()
                    .ignoreExceptionsInstanceOf(StorageUnavailableException.class)
                    .until(() -> storage.renew(claim, Claims.LEASE), renewed -> true);
            try (RedisIdempotenceStorage patient = redis.connect()) {
                assertThat(patient.complete(claim, large, Claims.RETENTION)).isEqualTo(new WriteResult.Done());
            }
        }
    }

    /** No other call may go to the node that hangs. */
    @Tag("all") // takes a quarter of a minute
    @Test
    void aLargeCompletionInAClusterIsEndedByCallsToOtherNodes() throws Exception {
        assumeThatTheDriverClosesConnectionsThatWrite();
        try (EmbeddedRedisCluster cluster = EmbeddedRedisCluster.start();
                RedisIdempotenceStorage storage = RedisIdempotenceStorage.builder(cluster.addresses())
                        .client(IMPATIENT)
                        .build()) {
            Claim claim = Claims.claim(storage, keyIn(0, 5_000));
            StorageKey elsewhere = keyIn(11_000, 16_384);
            for (EmbeddedRedis node : cluster.nodes()) {
                try (Jedis jedis = node.jedis()) {
                    jedis.configSet("cluster-require-full-coverage", "no");
                }
            }
            cluster.nodes().get(0).pause();
            FutureTask<WriteResult> completion =
                    new FutureTask<>(() -> storage.complete(claim, new byte[32 << 20], Claims.RETENTION));
            new Thread(completion).start();

            Awaitility.await().until(() -> {
                orUnavailable(() -> storage.find(elsewhere));
                return completion.isDone();
            });
            assertThatThrownBy(completion::get).hasCauseInstanceOf(StorageUnavailableException.class);
        }
    }

    private static StorageKey keyIn(int firstSlot, int endSlot) {
        return Stream.generate(Claims::newKey)
                .filter(key -> SlotMigration.slotOf(key) >= firstSlot && SlotMigration.slotOf(key) < endSlot)
                .findFirst()
                .orElseThrow();
    }

    @Test
    void emptyPoolIsUnavailableInABoundedTimeAndAnInterruptIsKept() throws Exception {
        ConnectionPoolConfig one = new ConnectionPoolConfig();
        one.setMaxTotal(1);
        one.setMaxWait(Duration.ofMillis(100));
        JedisClientConfig patient =
                DefaultJedisClientConfig.builder().socketTimeoutMillis(60_000).build();
        try (EmbeddedRedis redis = EmbeddedRedis.start();
                RedisIdempotenceStorage storage = RedisIdempotenceStorage.builder(redis.address())
                        .pool(one)
                        .client(patient)
                        .build()) {
            redis.pause();
            Thread holder = new Thread(() -> storage.find(key));
            holder.start();
            Awaitility.await().until(() -> waitsForItsReply(holder));
            assertUnavailable(() -> storage.find(key), "no free connection");

            AtomicReference<Throwable> thrown = new AtomicReference<>();
            AtomicBoolean flag = new AtomicBoolean();
            Thread interrupted = new Thread(() -> {
                Thread.currentThread().interrupt();
                thrown.set(catchThrowable(() -> storage.find(key)));
                flag.set(Thread.currentThread().isInterrupted());
            });
            interrupted.start();
            interrupted.join();
            assertThat(thrown.get())
                    .isInstanceOf(StorageUnavailableException.class)
                    .hasMessageContaining("interrupted");
            assertThat(flag).isTrue();
            redis.resume();
            holder.join();
        }
    }

    private static boolean waitsForItsReply(Thread caller) {
        return Stream.of(caller.getStackTrace())
                .anyMatch(frame -> frame.getClassName().endsWith(".RoundTripSender$Replies")
                        && frame.getMethodName().equals("next"));
    }

    @Test
    void closedStorageIsUnavailable() {
        try (EmbeddedRedis redis = EmbeddedRedis.start()) {
            RedisIdempotenceStorage storage = redis.connect();
            storage.close();

            assertThatThrownBy(() -> storage.find(key)).isInstanceOf(StorageUnavailableException.class);
        }
    }

    @ParameterizedTest
    @MethodSource("io.idempotence.server.redis.ApplicationsClients#ofOneServer")
    void deadRedisOfTheApplicationsClientIsUnavailable(String type) {
        try (EmbeddedRedis redis = EmbeddedRedis.start();
                UnifiedJedis client = ApplicationsClients.oneServer(type, redis.port());
                RedisIdempotenceStorage storage = RedisIdempotenceStorage.using(client)) {
            storage.find(key);
            redis.kill();

            assertUnavailable(() -> storage.claim(Claims.request(key)), "the application's client");
        }
    }

    @Test
    void downClusterIsUnavailable() {
        try (EmbeddedRedisCluster cluster = EmbeddedRedisCluster.start();
                RedisIdempotenceStorage storage = EmbeddedRedis.connect(cluster.addresses())) {
            storage.claim(Claims.request(key));
            cluster.nodes().forEach(EmbeddedRedis::kill);

            long start = System.nanoTime();
            assertUnavailable(() -> storage.claim(Claims.request(key)), "no connection");
            assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(BOUND);
        }
    }

    /** One attempt that may meet a connection of before the fault. */
    private static void orUnavailable(Runnable call) {
        try {
            call.run();
        } catch (StorageUnavailableException e) {
            assertThat(e).hasMessageContaining("no connection");
        }
    }

    private void assertUnavailable(Runnable call, String reason) {
        assertThatThrownBy(call::run)
                .isInstanceOf(StorageUnavailableException.class)
                .hasMessageContaining(reason)
                .hasMessageNotContaining(key.value())
                .hasCauseInstanceOf(RuntimeException.class);
    }
}
