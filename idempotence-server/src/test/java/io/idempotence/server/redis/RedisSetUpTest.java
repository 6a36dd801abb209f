package io.idempotence.server.redis;

import static org.assertj.core.api.Assertions.as;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.InstanceOfAssertFactories.STRING;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import ch.qos.logback.classic.spi.ILoggingEvent;
import io.idempotence.server.CapturedLog;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.StorageUnavailableException;
import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.UnifiedJedis;

/** The checks of servers that could lose or refuse claims: {@code strict()} refuses them, and without it there is a warning. */
@Tag("redis-7")
@Tag("jedis")
class RedisSetUpTest {
    private static void assertRefused(EmbeddedRedis redis, String why) {
        assertRefused(redis.address(), why);
        try (Jedis jedis = redis.jedis()) {
            assertThat(jedis.clientList().lines()).as("connections left open").hasSize(1);
        }
        assertWarned(redis.address(), why);
    }

    private static void assertRefused(String address, String why) {
        assertThatThrownBy(() -> EmbeddedRedis.builder(address).strict().build())
                .isInstanceOf(StorageUnavailableException.class)
                .hasMessageContaining("Redis at " + address + " is not set up as strict() demands")
                .hasMessageContaining(why);
    }

    /** Without {@code strict()}. */
    private static void assertWarned(String addresses, String why) {
        try (CapturedLog log = CapturedLog.of(RedisIdempotenceStorage.class)) {
            EmbeddedRedis.connect(addresses).close();
            assertThat(log.warnings())
                    .extracting(ILoggingEvent::getFormattedMessage)
                    .singleElement(as(STRING))
                    .contains(why);
        }
    }

    @Test
    void theServerIsOfTheVersionThatThisRunIsAbout() {
        assumeFalse(RedisBinary.isOfTheMachine(), "the machine's Redis is of any version");
        try (EmbeddedRedis redis = EmbeddedRedis.start();
                Jedis jedis = redis.jedis()) {
            assertThat(jedis.info("server")).contains("redis_version:" + RedisBinary.version() + ".");
        }
    }

    @Test
    void aServerThatIsSetUpWellIsAccepted() {
        try (EmbeddedRedis redis = EmbeddedRedis.startPersistent("--maxmemory", "100mb")) {
            EmbeddedRedis.builder(redis.address()).strict().build().close();
        }
    }

    @ParameterizedTest
    @CsvSource({
        "--appendonly, no, set appendonly yes",
        "--maxmemory-policy, volatile-lru, set noeviction",
        "--maxmemory-policy, volatile-lru --maxmemory 100mb, set noeviction",
        "--replicaof, 127.0.0.1 1, connect to the primary",
    })
    void aServerThatCouldLoseClaimsIsRefused(String option, String value, String why) {
        String[] options = ("--appendonly yes " + option + " " + value).split(" ", -1);
        try (EmbeddedRedis redis = EmbeddedRedis.start(options)) {
            assertRefused(redis, why);
        }
    }

    /** A replica refuses to wait for replicas. That does not mean that a right is missing. */
    @Test
    void aReplicaIsCalledOneAlsoIfItsReplicasAreWaitedFor() {
        try (EmbeddedRedis redis = EmbeddedRedis.startPersistent("--replicaof", "127.0.0.1", "1");
                CapturedLog log = CapturedLog.of(RedisIdempotenceStorage.class)) {
            RedisIdempotenceStorage.Builder waiting =
                    EmbeddedRedis.builder(redis.address()).waitForReplicas(1, Duration.ofMillis(100));
            waiting.build().close();
            assertThat(log.warnings())
                    .extracting(ILoggingEvent::getFormattedMessage)
                    .singleElement(as(STRING))
                    .contains("connect to the primary");
            assertThatThrownBy(() -> waiting.strict().build())
                    .isInstanceOf(StorageUnavailableException.class)
                    .hasMessageContaining("connect to the primary");
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"6.1", "5.9"})
    void aServerThatIsTooOldIsRefused(String version) throws IOException {
        try (EmbeddedRedis redis = EmbeddedRedis.startPersistent();
                DelayProxy old =
                        new DelayProxy(redis.port(), () -> (requests, bytes, length) -> say(version, bytes, length))) {
            assertRefused(old.address(), "it is older than Redis 6.2");
            assertWarned(old.address(), "it is older than Redis 6.2");
        }
    }

    /** Puts another version into the reply to {@code INFO}: there is no artifact of a server so old. */
    private static void say(String version, byte[] bytes, int length) {
        String name = "redis_version:";
        int at = new String(bytes, 0, length, StandardCharsets.ISO_8859_1).indexOf(name);
        if (at >= 0) {
            System.arraycopy(
                    version.getBytes(StandardCharsets.ISO_8859_1), 0, bytes, at + name.length(), version.length());
        }
    }

    @Test
    void aServerWithoutTheRightToInfoIsRefused() {
        try (EmbeddedRedis redis = EmbeddedRedis.startPersistent()) {
            try (Jedis jedis = redis.jedis()) {
                jedis.aclSetUser("app", "on", ">s3cret", "~idem:*", "+@all", "-info", "-cluster");
            }
            URI uri = URI.create("redis://app:s3cret@" + redis.address());
            assertThatThrownBy(() -> EmbeddedRedis.builder(uri).strict().build())
                    .isInstanceOf(StorageUnavailableException.class)
                    .hasMessageContaining("give the user the right to INFO")
                    .hasMessageNotContaining("s3cret");
            try (CapturedLog log = CapturedLog.of(RedisIdempotenceStorage.class)) {
                EmbeddedRedis.builder(uri).build().close();
                assertThat(log.warnings()).isEmpty();
            }
        }
    }

    @ParameterizedTest
    @MethodSource("io.idempotence.server.redis.ApplicationsClients#ofOneServer")
    void aServerOfTheApplicationsClientIsLookedAtOnce(String type) {
        try (EmbeddedRedis redis = EmbeddedRedis.start("--appendonly", "yes", "--maxmemory-policy", "allkeys-lru");
                UnifiedJedis client = ApplicationsClients.oneServer(type, redis.port())) {
            assertWarnedOnce(RedisIdempotenceStorage.using(client), "set noeviction");
        }
    }

    private static void assertWarnedOnce(IdempotenceStorage storage, String why) {
        try (CapturedLog log = CapturedLog.of(RedisIdempotenceStorage.class)) {
            assertThat(log.warnings()).as("before the first call").isEmpty();
            Claims.claim(storage, Claims.newKey());
            Claims.claim(storage, Claims.newKey());
            assertThat(log.warnings())
                    .extracting(ILoggingEvent::getFormattedMessage)
                    .singleElement(as(STRING))
                    .contains("Redis (the application's ", why);
        }
    }

    @ParameterizedTest
    @MethodSource("io.idempotence.server.redis.ApplicationsClients#ofOneServer")
    void aServerOfTheApplicationThatMayNotBeAskedServes(String type) {
        try (EmbeddedRedis redis = EmbeddedRedis.start()) {
            try (Jedis jedis = redis.jedis()) {
                jedis.aclSetUser("default", "-info");
            }
            try (UnifiedJedis client = ApplicationsClients.oneServer(type, redis.port());
                    CapturedLog log = CapturedLog.of(RedisIdempotenceStorage.class)) {
                Claims.claim(RedisIdempotenceStorage.using(client), Claims.newKey());
                assertThat(log.warnings()).isEmpty();
            }
        }
    }

    @Test
    void aClusterIsLookedAtNodeByNode() {
        try (EmbeddedRedisCluster cluster = EmbeddedRedisCluster.start()) {
            assertThatThrownBy(() ->
                            EmbeddedRedis.builder(cluster.addresses()).strict().build())
                    .isInstanceOf(StorageUnavailableException.class)
                    .hasMessageContaining("set appendonly yes");
            assertWarned(cluster.addresses(), "set appendonly yes");
            cluster.nodes().forEach(node -> {
                try (Jedis jedis = node.jedis()) {
                    jedis.configSet("appendonly", "yes");
                }
            });
            EmbeddedRedis.builder(cluster.addresses()).strict().build().close();
        }
    }

    @Test
    void aQueryInAUriIsRefused() {
        assertThatThrownBy(() -> RedisIdempotenceStorage.connect(URI.create("redis://localhost:1/0?timeout=5s")))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("nothing here reads")
                .hasMessageNotContaining("5s");
    }
}
