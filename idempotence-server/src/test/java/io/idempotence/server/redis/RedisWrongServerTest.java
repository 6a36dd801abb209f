package io.idempotence.server.redis;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.server.redis.RedisIdempotenceStorage.Builder;
import io.idempotence.server.storage.StorageUnavailableException;
import java.net.URI;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import redis.clients.jedis.Jedis;

/** Settings that are for another kind of server than the one at the address. The message says what is there, and the fix. */
@Tag("redis-7")
@Tag("jedis")
class RedisWrongServerTest {
    private static EmbeddedRedis redis;
    private static EmbeddedRedis watched;
    private static EmbeddedRedis node;
    private static EmbeddedRedis sentinel;

    @BeforeAll
    static void start() {
        redis = EmbeddedRedis.start("--databases", "4");
        node = EmbeddedRedis.start("--cluster-enabled", "yes");
        watched = EmbeddedRedis.start();
        sentinel = EmbeddedRedis.startSentinel("orders", watched);
    }

    @AfterAll
    static void stop() {
        sentinel.close();
        watched.close();
        node.close();
        redis.close();
    }

    private static void assertFails(Builder builder, String... parts) {
        assertThatThrownBy(builder::build)
                .isInstanceOf(StorageUnavailableException.class)
                .hasMessageContaining(" cannot be used: ")
                .hasMessageContainingAll(parts)
                .hasMessageNotContaining("Exception")
                .hasMessageNotContaining("check that it runs");
        LeftBehind.awaitNothing(redis);
    }

    @Test
    void addressOfARedisWhereSentinelsAreExpected() {
        assertFails(
                EmbeddedRedis.builder(redis.address()).sentinel("orders"),
                redis.address() + " is no Sentinel",
                "give the addresses of the Sentinels");
    }

    @Test
    void nameThatTheSentinelsDoNotWatch() {
        assertFails(
                EmbeddedRedis.builder(sentinel.address()).sentinel("order"),
                "watches no primary 'order', but [orders]");
    }

    @Test
    void oneOfTwoSentinelsKnowsTheNames() {
        String both = "127.0.0.1:1;" + sentinel.address();
        assertFails(EmbeddedRedis.builder(both).sentinel("order"), "watches no primary 'order', but [orders]");
    }

    @Test
    void addressOfASentinelWhereARedisIsExpected() {
        assertFails(
                EmbeddedRedis.builder(sentinel.address()),
                sentinel.address() + " is a Sentinel",
                "give the name of the primary");
    }

    @Test
    void addressesOfSingleServersWhereAClusterIsExpected() {
        assertFails(
                EmbeddedRedis.builder(redis.address() + ";" + sentinel.address()),
                redis.address() + " is no node of a Cluster",
                "give one address");
    }

    @Test
    void databaseThatTheServerDoesNotHave() {
        assertFails(
                RedisIdempotenceStorage.builder(URI.create("redis://" + redis.address() + "/4")),
                redis.address() + " has no database 4",
                "'databases'");
    }

    @Test
    void databaseOtherThan0InACluster() {
        assertFails(
                RedisIdempotenceStorage.builder(URI.create("redis://" + node.address() + "/3")),
                node.address() + " is a node of a Cluster, which has only database 0");
    }

    @Test
    void missingPasswordIsNoWrongOne() {
        try (EmbeddedRedis guarded = EmbeddedRedis.start()) {
            try (Jedis jedis = guarded.jedis()) {
                jedis.configSet("requirepass", "s3cret");
            }
            assertThatThrownBy(EmbeddedRedis.builder(guarded.address())::build)
                    .isInstanceOf(StorageUnavailableException.class)
                    .hasMessageContaining("Redis demands a password, and none was given (NOAUTH)");
        }
    }

    @Test
    void hostThatNobodyKnows() {
        assertThatThrownBy(EmbeddedRedis.builder("nowhere.invalid:6379")::build)
                .isInstanceOf(StorageUnavailableException.class)
                .hasMessageContaining("its host is unknown");
    }
}
