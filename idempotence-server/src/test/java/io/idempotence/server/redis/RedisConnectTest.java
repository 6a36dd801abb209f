package io.idempotence.server.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.server.redis.internal.jedis.RedisConnector;
import io.idempotence.server.redis.internal.jedis.RedisUri;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.StorageUnavailableException;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.time.Duration;
import java.util.Locale;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.UnifiedJedis;

/** The opening and closing of connections: who owns them, and what is left when opening fails. */
@Tag("redis-7")
@Tag("jedis")
class RedisConnectTest {
    private static EmbeddedRedis redis;

    @BeforeAll
    static void start() {
        redis = EmbeddedRedis.start();
        try (Jedis jedis = redis.jedis()) {
            jedis.aclSetUser("app", "on", ">s3cret", "~idem:*", "+@all");
        }
    }

    @AfterAll
    static void stop() {
        redis.close();
    }

    @Test
    void theDriverIsOfTheVersionThatThisRunIsAbout() throws IOException {
        Properties pom = new Properties();
        try (InputStream in = Jedis.class.getResourceAsStream("pom.properties")) {
            pom.load(in);
        }
        assertThat(pom.getProperty("version")).isEqualTo(System.getProperty("idempotence.test.jedis"));
    }

    @Test
    void closingClosesWhatWasOpenedHere() {
        LeftBehind.awaitNoConnections(redis);
        RedisIdempotenceStorage storage = redis.connect();
        storage.find(Claims.newKey());
        assertThat(LeftBehind.connections(redis)).isPositive();
        assertThat(LeftBehind.poolThreads()).isPositive();
        storage.close();
        storage.close();

        LeftBehind.awaitNothing(redis);
    }

    @Test
    void closingKeepsTheInterruptOfItsThread() {
        RedisIdempotenceStorage storage = redis.connect();
        storage.find(Claims.newKey());
        Thread.currentThread().interrupt();
        storage.close();
        assertThat(Thread.interrupted()).isTrue();
    }

    @ParameterizedTest
    @MethodSource("io.idempotence.server.redis.ApplicationsClients#ofOneServer")
    void applicationsClientIsNeverClosed(String type) {
        try (UnifiedJedis client = ApplicationsClients.oneServer(type, redis.port())) {
            RedisIdempotenceStorage storage = RedisIdempotenceStorage.using(client);
            String namespace = "client-" + type.toLowerCase(Locale.ROOT);
            forgetScripts();
            Claims.claim(storage, Claims.newKey(namespace));
            assertThat(storage.list(namespace)).hasSize(1);
            storage.close();

            assertThat(client.set("still", "open")).isEqualTo("OK");
            Claims.claim(RedisIdempotenceStorage.using(client), Claims.newKey());
        }
    }

    private static void forgetScripts() {
        try (Jedis jedis = redis.jedis()) {
            jedis.scriptFlush();
        }
    }

    @Test
    void addressWhereNothingRespondsFailsAtOnceAndLeavesNothingBehind() throws Exception {
        String address = "127.0.0.1:" + EmbeddedRedis.freePort();
        long start = System.nanoTime();

        assertFails(() -> RedisIdempotenceStorage.connect(address), "Redis at " + address, "check that it runs");
        assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(Duration.ofMinutes(1));
        LeftBehind.awaitNoPoolThread();
    }

    @Test
    void clusterWhereNothingRespondsFailsAndLeavesNothingBehind() throws Exception {
        String addresses = "127.0.0.1:" + EmbeddedRedis.freePort() + ";[::1]:" + EmbeddedRedis.freePort();

        assertFails(() -> RedisIdempotenceStorage.connect(addresses), "Redis Cluster at " + addresses);
        LeftBehind.awaitNoPoolThread();
    }

    @Test
    void seedsThatAreNoClusterFailAndLeaveNothingBehind() {
        LeftBehind.awaitNoConnections(redis);
        try (EmbeddedRedis other = EmbeddedRedis.start()) {
            String addresses = redis.address() + ";" + other.address();
            assertFails(() -> RedisIdempotenceStorage.connect(addresses), "Redis Cluster at " + addresses);
        }
        LeftBehind.awaitNothing(redis);
    }

    @Test
    void wrongPasswordFailsWithoutShowingItAndLeavesNothingBehind() {
        LeftBehind.awaitNoConnections(redis);
        URI uri = URI.create("redis://app:wr0ng@" + redis.address());

        assertFails(() -> EmbeddedRedis.builder(uri).build(), redis.address(), "denies the user or the password");
        LeftBehind.awaitNothing(redis);
    }

    @Test
    void missingRightIsNoCorruptRecord() {
        try (Jedis jedis = redis.jedis()) {
            jedis.aclSetUser("blind", "on", ">s3cret", "~idem:*", "+evalsha", "+eval", "+pttl");
        }
        URI uri = URI.create("redis://blind:s3cret@" + redis.address());

        assertFails(() -> EmbeddedRedis.builder(uri).build(), redis.address(), "lacks the right");
    }

    @Test
    void databaseOfTheUriIsUsed() {
        var key = Claims.newKey();
        URI uri = URI.create("redis://" + redis.address() + "/3");
        try (RedisIdempotenceStorage storage = EmbeddedRedis.builder(uri).build();
                Jedis jedis = redis.jedis()) {
            Claims.claim(storage, key);
            assertThat(jedis.exists(key.value())).isFalse();
            jedis.select(3);
            assertThat(jedis.exists(key.value())).isTrue();
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "http://s3cret@host:1",
                "//s3cret@host",
                "host",
                "redis:opaque",
                "redis://s3cret@host",
                "redis:///0",
                "redis://:s3cret@host:0",
                "redis://:s3cret@host:70000",
                "redis://:s3cret@host/db",
                "redis://:s3cret@host/1/2"
            })
    void malformedUriIsRefusedWithoutShowingIt(String uri) {
        assertThatThrownBy(() -> RedisIdempotenceStorage.connect(URI.create(uri)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("Redis URI")
                .hasMessageNotContaining("s3cret");
    }

    @Test
    void timeoutsBesideAUriReplaceTheDefaults() {
        try (EmbeddedRedis own = EmbeddedRedis.start()) {
            URI uri = URI.create("redis://" + own.address() + "/3");
            RedisIdempotenceStorage.Builder patient =
                    RedisIdempotenceStorage.builder(uri).timeouts(Duration.ofSeconds(40), Duration.ofSeconds(40));
            FutureTask<RedisIdempotenceStorage> start = new FutureTask<>(patient::build);
            own.pause();
            new Thread(start).start();
            // One with the defaults began later, and has given up.
            assertThatThrownBy(RedisIdempotenceStorage.builder(uri)::build)
                    .isInstanceOf(StorageUnavailableException.class);
            assertThat(start).isNotDone();
            own.resume();
            try (RedisIdempotenceStorage storage = start.get()) {
                Claims.claim(storage, Claims.newKey());
            }
            try (Jedis jedis = own.jedis()) {
                assertThat(jedis.info("keyspace")).contains("db3:");
            }
        } catch (InterruptedException | ExecutionException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void timeoutsKeepTheOtherSettings() {
        JedisClientConfig client = RedisConnector.withTimeouts(
                RedisUri.clientConfig(URI.create("rediss://orders:s3cret@host/3")),
                Duration.ofSeconds(2),
                Duration.ofSeconds(5));
        assertThat(client.getConnectionTimeoutMillis()).isEqualTo(2_000);
        assertThat(client.getSocketTimeoutMillis()).isEqualTo(5_000);
        assertThat(client.getDatabase()).isEqualTo(3);
        assertThat(client.getSslOptions()).isNotNull();
        assertThat(client.getCredentialsProvider().get().getUser()).isEqualTo("orders");
    }

    @ParameterizedTest
    @CsvSource({"0, 1000", "1000, 0", "-1, 1000", "1000, -1", "2592000000, 1000", "1000, 3600001"})
    void timeoutsThatAreNoneOrTooLongAreRefused(long connect, long reply) {
        RedisIdempotenceStorage.Builder builder = RedisIdempotenceStorage.builder(redis.address());
        assertThatThrownBy(() -> builder.timeouts(Duration.ofMillis(connect), Duration.ofMillis(reply)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("must be 1 ms to 1 h");
    }

    @Test
    void unboundedWaitForAConnectionBecomesBoundedAndTheCallersConfigStaysItsOwn() {
        ConnectionPoolConfig config = new ConnectionPoolConfig();
        config.setMaxTotal(1);
        assertThat(config.getMaxWaitDuration()).isNegative();
        try (RedisIdempotenceStorage storage =
                EmbeddedRedis.builder(redis.address()).pool(config).build()) {
            Claims.claim(storage, Claims.newKey());
            assertThat(config.getMaxWaitDuration()).isNegative();
        }
    }

    @Test
    void timeoutOfZeroIsRefused() {
        JedisClientConfig forEver =
                DefaultJedisClientConfig.builder().socketTimeoutMillis(0).build();
        assertThatThrownBy(
                        () -> RedisIdempotenceStorage.builder(redis.address()).client(forEver))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("waits forever");
    }

    private static void assertFails(ThrowingCallable call, String... parts) {
        assertThatThrownBy(call)
                .isInstanceOf(StorageUnavailableException.class)
                .hasMessageContainingAll(parts)
                .hasMessageNotContaining("s3cret")
                .hasMessageNotContaining("wr0ng");
    }
}
