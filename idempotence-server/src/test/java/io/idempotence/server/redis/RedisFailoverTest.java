package io.idempotence.server.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import io.idempotence.server.storage.WriteResult;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.exceptions.JedisConnectionException;

/**
 * A replica becomes the primary while the former primary lives on, and is reached under the same address: a virtual IP address, a DNS
 * name, a Kubernetes service. The address here is a forwarder that sends new connections to another server.
 */
@Tag("redis-7")
@Tag("jedis")
class RedisFailoverTest {
    private static final int CONNECTIONS = 16;

    private final ExecutorService threads = Executors.newFixedThreadPool(CONNECTIONS);
    private EmbeddedRedis former;
    private EmbeddedRedis replica;
    private DelayProxy address;

    @BeforeEach
    void start() {
        former = EmbeddedRedis.start();
        replica = EmbeddedRedis.startReplicaOf(former);
        address = new DelayProxy(former.port());
    }

    @AfterEach
    void stop() throws IOException {
        threads.shutdownNow();
        address.close();
        replica.close();
        former.close();
    }

    /** Every connection of the pool is open and idle afterwards. */
    private void openConnections(RedisIdempotenceStorage storage) throws Exception {
        former.pause();
        List<Future<?>> calls = new ArrayList<>();
        CyclicBarrier together = new CyclicBarrier(CONNECTIONS + 1);
        for (int i = 0; i < CONNECTIONS; i++) {
            calls.add(threads.submit(() -> {
                together.await();
                return storage.find(Claims.newKey());
            }));
        }
        together.await();
        former.resume();
        for (Future<?> call : calls) {
            call.get();
        }
        storage.find(Claims.newKey());
    }

    private void failOver() {
        try (Jedis demoted = former.jedis();
                Jedis promoted = replica.jedis()) {
            former.awaitCopied();
            promoted.replicaofNoOne();
            demoted.replicaof(replica.host(), replica.port());
        }
    }

    private void recovers(RedisIdempotenceStorage storage) throws Exception {
        openConnections(storage);
        StorageKey running = Claims.newKey();
        Claim claim = Claims.claim(storage, running);
        failOver();

        // The address still leads to the former primary.
        assertThatThrownBy(() -> storage.claim(Claims.request(Claims.newKey())))
                .isInstanceOfSatisfying(
                        StorageUnavailableException.class,
                        e -> assertThat(e.nothingWritten()).isTrue())
                .hasMessageContaining("READONLY");

        address.target(replica.port());

        List<Future<ClaimResult>> claims = new ArrayList<>();
        for (int i = 0; i < 2 * CONNECTIONS; i++) {
            claims.add(threads.submit(() -> storage.claim(Claims.request(Claims.newKey()))));
        }
        for (Future<ClaimResult> each : claims) {
            assertThat(each.get()).isInstanceOf(ClaimResult.Claimed.class);
        }
        assertThat(storage.complete(claim, new byte[] {7}, Claims.RETENTION)).isEqualTo(new WriteResult.Done());
        try (Jedis promoted = replica.jedis()) {
            assertThat(promoted.dbSize()).isGreaterThanOrEqualTo(2L * CONNECTIONS);
        }
    }

    @Test
    void connectionsToADemotedPrimaryRefuseNobodyOnceTheAddressLeadsToTheNewOne() throws Exception {
        try (RedisIdempotenceStorage storage = EmbeddedRedis.connect(address.address())) {
            recovers(storage);
        }
    }

    @ParameterizedTest
    @MethodSource("io.idempotence.server.redis.ApplicationsClients#ofOneServer")
    void theApplicationsConnectionsToADemotedPrimaryAreDroppedAsWell(String type) throws Exception {
        try (UnifiedJedis client = ApplicationsClients.oneServer(type, address.port());
                RedisIdempotenceStorage storage = RedisIdempotenceStorage.using(client)) {
            openConnections(storage);
            failOver();
            assertThatThrownBy(() -> storage.claim(Claims.request(Claims.newKey())))
                    .isInstanceOf(StorageUnavailableException.class)
                    .hasMessageContaining("READONLY");
            address.target(replica.port());

            // One request may meet the connection that was opened since.
            await().ignoreExceptionsInstanceOf(StorageUnavailableException.class)
                    .until(() -> storage.claim(Claims.request(Claims.newKey())) instanceof ClaimResult.Claimed);
            for (int i = 0; i < 2 * CONNECTIONS; i++) {
                Claims.claim(storage, Claims.newKey());
            }
        }
    }

    /** A demoted primary that serves no data, one that is loading, and one that nobody copies. */
    @ParameterizedTest
    @ValueSource(strings = {"MASTERDOWN", "NOREPLICAS"})
    void connectionsToAPrimaryThatTakesNoWritesForAnotherReasonAreDroppedAsWell(String reply) {
        try (RedisIdempotenceStorage storage = EmbeddedRedis.connect(address.address());
                Jedis jedis = former.jedis();
                Jedis promoted = replica.jedis()) {
            Claims.claim(storage, Claims.newKey());
            promoted.replicaofNoOne();
            if (reply.equals("MASTERDOWN")) {
                jedis.configSet("replica-serve-stale-data", "no");
                jedis.replicaof("127.0.0.1", 1);
            } else {
                jedis.configSet("min-replicas-to-write", "1");
            }
            await().untilAsserted(() -> assertThatThrownBy(() -> storage.claim(Claims.request(Claims.newKey())))
                    .isInstanceOf(StorageUnavailableException.class)
                    .hasMessageContaining(reply));

            address.target(replica.port());

            Claims.claim(storage, Claims.newKey());
        }
    }

    @Test
    void aDemotedPrimaryIsNotBelievedThatAnIdIsStillInProgress() {
        StorageKey running = Claims.newKey();
        StorageKey completed = Claims.newKey();
        try (RedisIdempotenceStorage storage = EmbeddedRedis.connect(address.address());
                RedisIdempotenceStorage atTheNewOne = replica.connect();
                Jedis demoted = former.jedis();
                Jedis promoted = replica.jedis()) {
            Claim claim = Claims.claim(storage, running);
            storage.complete(Claims.claim(storage, completed), new byte[] {7}, Claims.RETENTION);
            former.awaitCopied();
            promoted.replicaofNoOne();
            // It copies nothing from here on.
            demoted.replicaof("127.0.0.1", 1);
            atTheNewOne.complete(claim, new byte[] {8}, Claims.RETENTION);

            assertThatThrownBy(() -> storage.claim(Claims.request(running)))
                    .isInstanceOf(StorageUnavailableException.class)
                    .hasMessageContaining("READONLY");
            // A completion is final wherever it is read.
            assertThat(storage.claim(Claims.request(completed))).isInstanceOf(ClaimResult.Completed.class);

            address.target(replica.port());
            assertThat(storage.claim(Claims.request(running)))
                    .isInstanceOfSatisfying(
                            ClaimResult.Completed.class,
                            replayed -> assertThat(replayed.result()).containsExactly(8));
        }
    }

    private static boolean isPrimaryWith(EmbeddedRedis server, StorageKey key) {
        // A new connection: a server that is promoted closes the others, and perhaps this one.
        try (Jedis jedis = server.jedis()) {
            return jedis.info("replication").contains("role:master") && jedis.exists(key.value());
        }
    }

    private static void followsItsSentinels(EmbeddedRedisSentinel group, RedisIdempotenceStorage storage) {
        Claims.claim(storage, Claims.newKey());
        try (Jedis sentinel = group.sentinels().get(0).jedis()) {
            sentinel.sentinelFailover(EmbeddedRedisSentinel.NAME);
        }
        await().ignoreExceptionsMatching(
                        e -> e instanceof StorageUnavailableException || e instanceof JedisConnectionException)
                .until(() -> {
                    StorageKey key = Claims.newKey();
                    return storage.claim(Claims.request(key)) instanceof ClaimResult.Claimed
                            && isPrimaryWith(group.replica(), key);
                });
    }

    @Test
    void aPrimaryThatSentinelsDemotedIsLeftThoughItLives() {
        try (EmbeddedRedisSentinel group = EmbeddedRedisSentinel.start();
                RedisIdempotenceStorage storage = EmbeddedRedis.builder(group.addresses())
                        .sentinel(EmbeddedRedisSentinel.NAME)
                        .build()) {
            followsItsSentinels(group, storage);
        }
    }

    @ParameterizedTest
    @MethodSource("io.idempotence.server.redis.ApplicationsClients#ofSentinels")
    void theApplicationsClientOfSentinelsLeavesADemotedPrimary(String type) {
        try (EmbeddedRedisSentinel group = EmbeddedRedisSentinel.start();
                UnifiedJedis client = ApplicationsClients.sentinels(type, group);
                RedisIdempotenceStorage storage = RedisIdempotenceStorage.using(client)) {
            followsItsSentinels(group, storage);
            String namespace = "listed";
            Claims.claim(storage, Claims.newKey(namespace));
            assertThat(storage.list(namespace)).hasSize(1);
        }
    }
}
