package io.idempotence.server.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.IdempotenceId;
import io.idempotence.server.storage.ClaimRequest;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.Fingerprint;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorageContract;
import io.idempotence.server.storage.Owner;
import io.idempotence.server.storage.StorageKey;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.UUID;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.RedisClusterClient;

/** As a user with an operator's documented rights. */
@Tag("redis-7")
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
        return RedisIdempotenceStorage.builder(addresses).client(user).build();
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
            for (EmbeddedRedis node : cluster.nodes()) {
                try (Jedis jedis = node.jedis()) {
                    jedis.scriptFlush();
                }
            }
            for (int i = 0; i < 12; i++) {
                assertThat(claimNew(storage)).isInstanceOf(ClaimResult.Claimed.class);
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

    @Test
    void applicationsClusterClientWorksAndStaysOpen() {
        EmbeddedRedis seed = cluster.nodes().get(0);
        try (RedisClusterClient client = RedisClusterClient.create(new HostAndPort(seed.host(), seed.port()))) {
            try (IdempotenceStorage storage = RedisIdempotenceStorage.using(client)) {
                assertThat(claimNew(storage)).isInstanceOf(ClaimResult.Claimed.class);
            }
            assertThat(client.set("still", "open")).isEqualTo("OK");
        }
    }

    @Test
    @SuppressWarnings("deprecation")
    void applicationsJedisClusterWorks() {
        EmbeddedRedis seed = cluster.nodes().get(0);
        try (var client = new redis.clients.jedis.JedisCluster(new HostAndPort(seed.host(), seed.port()))) {
            assertThat(claimNew(RedisIdempotenceStorage.using(client))).isInstanceOf(ClaimResult.Claimed.class);
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
