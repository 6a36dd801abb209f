package io.idempotence.server.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.IdempotenceId;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.Fingerprint;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorage.ClaimRequest;
import io.idempotence.server.storage.IdempotenceStorageContract;
import io.idempotence.server.storage.Owner;
import io.idempotence.server.storage.StorageKey;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.Locale;
import java.util.UUID;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.UnifiedJedis;

/** The storage contract on a Redis Cluster, as a user with the documented rights of an operator. */
@Tag("redis-7")
@Tag("jedis")
class RedisClusterIdempotenceStorageTest extends IdempotenceStorageContract {
    private static EmbeddedRedisCluster cluster;
    private static JedisClientConfig user;

    @BeforeAll
    static void start() {
        cluster = EmbeddedRedisCluster.start();
        user = Rights.inCluster(cluster, "scan");
    }

    @AfterAll
    static void stop() {
        cluster.close();
    }

    @Override
    protected IdempotenceStorage createStorage() {
        return connect(cluster.addresses());
    }

    private static RedisIdempotenceStorage connect(String addresses) {
        return EmbeddedRedis.builder(addresses).client(user).build();
    }

    @Override
    protected void letPass(Duration duration) {
        ServerTime.letPass(cluster.nodes().get(0), duration);
    }

    @Test
    void recordsSpreadOverAllPrimaries() {
        try (IdempotenceStorage storage = createStorage()) {
            for (int i = 0; i < 60; i++) {
                assertThat(claimNew(storage)).isInstanceOf(ClaimResult.Claimed.class);
            }
        }
        for (EmbeddedRedis node : cluster.nodes()) {
            try (Jedis jedis = node.jedis()) {
                assertThat(jedis.dbSize()).isPositive();
            }
        }
    }

    @Test
    void scriptsForgottenByEveryNodeAreSentAgain() {
        try (IdempotenceStorage storage = createStorage()) {
            forgetScripts();
            for (int i = 0; i < 12; i++) {
                assertThat(claimNew(storage)).isInstanceOf(ClaimResult.Claimed.class);
            }
        }
    }

    private static void forgetScripts() {
        for (EmbeddedRedis node : cluster.nodes()) {
            try (Jedis jedis = node.jedis()) {
                jedis.scriptFlush();
            }
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2})
    void singleAddressOfAClusterNodeIsUsedAsASeed(int node) {
        String address = cluster.nodes().get(node).address();
        try (IdempotenceStorage storage = connect(address)) {
            assertThat(storage).hasToString("RedisIdempotenceStorage[Redis Cluster at " + address + "]");
            for (int i = 0; i < 12; i++) {
                assertThat(claimNew(storage)).isInstanceOf(ClaimResult.Claimed.class);
            }
        }
    }

    @Test
    void oneDeadSeedIsNoObstacle() throws Exception {
        try (IdempotenceStorage storage = connect("127.0.0.1:" + EmbeddedRedis.freePort() + ";"
                + cluster.nodes().get(2).address())) {
            assertThat(claimNew(storage)).isInstanceOf(ClaimResult.Claimed.class);
        }
    }

    @ParameterizedTest
    @MethodSource("io.idempotence.server.redis.ApplicationsClients#ofClusters")
    void applicationsClusterClientWorksAndStaysOpen(String type) {
        String namespace = "client-" + type.toLowerCase(Locale.ROOT);
        forgetScripts();
        try (UnifiedJedis client = ApplicationsClients.cluster(type, cluster)) {
            try (IdempotenceStorage storage = RedisIdempotenceStorage.using(client)) {
                StorageKey completed = Claims.newKey(namespace);
                storage.complete(Claims.claim(storage, completed), new byte[] {7}, Claims.RETENTION);
                assertThat(storage.claim(Claims.request(completed))).isInstanceOf(ClaimResult.Completed.class);
                for (int i = 0; i < 12; i++) {
                    Claims.claim(storage, Claims.newKey(namespace));
                }
                assertThat(storage.list(namespace)).hasSize(13);
                assertThat(storage.delete(completed)).isTrue();
            }
            assertThat(client.set("still", "open")).isEqualTo("OK");
        }
    }

    private static ClaimResult claimNew(IdempotenceStorage storage) {
        StorageKey key = StorageKey.of(
                "spread", "", "", new IdempotenceId(UUID.randomUUID().toString()));
        return storage.claim(new ClaimRequest(
                key,
                Fingerprint.NONE,
                Owner.random(new SecureRandom()),
                Duration.ofSeconds(10),
                Duration.ofMinutes(1),
                false));
    }
}
