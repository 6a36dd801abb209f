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
import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.Jedis;

/** The primary of a slot of a Redis Cluster dies, and its replica takes its place. */
@Tag("all")
class RedisClusterFailoverTest {
    @Test
    @DisplayName("P2: a claim that a replica has outlives the primary of its slot")
    void aClaimOutlivesThePrimaryOfItsSlot() {
        try (EmbeddedRedisCluster cluster = EmbeddedRedisCluster.startWithReplica();
                RedisIdempotenceStorage storage = as(cluster).build();
                RedisIdempotenceStorage careful = careful(cluster)) {
            EmbeddedRedis primary = cluster.nodes().get(0);
            EmbeddedRedis replica = cluster.replicas().get(0);
            StorageKey completed = keyOfTheFirst();
            StorageKey claimed = keyOfTheFirst();
            careful.complete(Claims.claim(careful, completed), new byte[] {7}, Claims.RETENTION);
            Claim claim = Claims.claim(careful, claimed);
            // Redis 6.2 has given it the scripts, too.
            scriptFlush(replica);

            primary.kill();

            assertThat(claimWhenAvailable(storage, claimed)).isInstanceOf(ClaimResult.InProgress.class);
            assertThat(unknownScripts(replica)).isPositive();
            assertThat(storage.claim(Claims.request(completed))).isInstanceOf(ClaimResult.Completed.class);
            assertThat(storage.complete(claim, new byte[] {8}, Claims.RETENTION))
                    .isEqualTo(new WriteResult.Done());
            assertThat(storage.claim(Claims.request(claimed)))
                    .isInstanceOfSatisfying(
                            ClaimResult.Completed.class,
                            replayed -> assertThat(replayed.result()).containsExactly(8));

            StorageKey later = keyOfTheFirst();
            Claim next = Claims.claim(storage, later);
            assertThat(storage.complete(next, new byte[] {9}, Claims.RETENTION)).isEqualTo(new WriteResult.Done());
            // There is no replica any more: who insists on one is refused, and nothing runs.
            assertThatThrownBy(() -> careful.claim(Claims.request(keyOfTheFirst())))
                    .isInstanceOf(StorageUnavailableException.class);
        }
    }

    @Test
    @DisplayName("P6: a slot is available again when its primary hangs and a replica has taken its place")
    void theReplicaOfAPrimaryThatHangsIsFound() {
        try (EmbeddedRedisCluster cluster = EmbeddedRedisCluster.startWithReplica();
                RedisIdempotenceStorage storage = as(cluster)
                        .client(DefaultJedisClientConfig.builder()
                                .from(Rights.inCluster(cluster))
                                .timeoutMillis(3_000)
                                .build())
                        .build();
                RedisIdempotenceStorage careful = careful(cluster)) {
            StorageKey claimed = keyOfTheFirst();
            Claims.claim(storage, claimed);
            // The replica then has the claim before it, too.
            Claims.claim(careful, keyOfTheFirst());

            cluster.nodes().get(0).pause();

            assertThat(claimWhenAvailable(storage, claimed)).isInstanceOf(ClaimResult.InProgress.class);
        }
    }

    @Test
    void recordsAreListedAlthoughAReplicaHasDied() {
        try (EmbeddedRedisCluster cluster = EmbeddedRedisCluster.startWithReplica()) {
            EmbeddedRedis replica = cluster.replicas().get(0);
            await().until(() -> cluster.nodes().stream().allMatch(node -> reports(node, replica)));
            try (RedisIdempotenceStorage storage = as(cluster, "scan", "info").build()) {
                Claims.claim(storage, keyOfTheFirst());
                assertThat(storage.list("payments")).hasSize(1);

                replica.kill();

                // Until the others have noticed, nobody knows whether it was a primary.
                await().ignoreExceptionsInstanceOf(StorageUnavailableException.class)
                        .untilAsserted(
                                () -> assertThat(storage.list("payments")).hasSize(1));
            }
        }
    }

    /** Whether a node reports a replica to clients. */
    private static boolean reports(EmbeddedRedis node, EmbeddedRedis replica) {
        try (Jedis jedis = node.jedis()) {
            return jedis.clusterSlots().stream()
                    .flatMap(slots -> ((List<?>) slots).stream().skip(2))
                    .anyMatch(server -> ((List<?>) server).contains((long) replica.port()));
        }
    }

    private static RedisIdempotenceStorage.Builder as(EmbeddedRedisCluster cluster, String... more) {
        return EmbeddedRedis.builder(cluster.addresses()).client(Rights.inCluster(cluster, more));
    }

    private static RedisIdempotenceStorage careful(EmbeddedRedisCluster cluster) {
        return as(cluster, "wait").waitForReplicas(1, Duration.ofSeconds(5)).build();
    }

    /** The first reply to a claim. Until the storage is available it is refused, and whichever reply then comes first is right. */
    private static ClaimResult claimWhenAvailable(RedisIdempotenceStorage storage, StorageKey key) {
        return await().ignoreExceptionsInstanceOf(StorageUnavailableException.class)
                .until(() -> storage.claim(Claims.request(key)), reply -> true);
    }

    /** A new one in a slot of the first primary. */
    private static StorageKey keyOfTheFirst() {
        return Stream.generate(Claims::newKey)
                .filter(key -> SlotMigration.slotOf(key) < 16_384 / 3)
                .findFirst()
                .orElseThrow();
    }

    private static void scriptFlush(EmbeddedRedis server) {
        try (Jedis jedis = server.jedis()) {
            jedis.scriptFlush();
        }
    }

    private static long unknownScripts(EmbeddedRedis server) {
        try (Jedis jedis = server.jedis()) {
            return jedis.info("errorstats")
                    .lines()
                    .filter(line -> line.startsWith("errorstat_NOSCRIPT:"))
                    .count();
        }
    }
}
