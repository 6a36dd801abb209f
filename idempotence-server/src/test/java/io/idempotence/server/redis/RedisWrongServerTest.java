package io.idempotence.server.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.idempotence.server.redis.RedisIdempotenceStorage.Builder;
import io.idempotence.server.storage.StorageUnavailableException;
import java.io.IOException;
import java.net.URI;
import java.util.function.IntSupplier;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisClientConfig;

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

    private static void assertFails(EmbeddedRedis server, Builder builder, String... parts) {
        assertThatThrownBy(builder::build)
                .isInstanceOf(StorageUnavailableException.class)
                .hasMessageContaining(" cannot be used: ")
                .hasMessageContainingAll(parts)
                .hasMessageNotContaining("Exception")
                .hasMessageNotContaining("check that it runs");
        LeftBehind.awaitNothing(server);
    }

    @Test
    void addressOfARedisWhereSentinelsAreExpected() {
        assertFails(
                redis,
                EmbeddedRedis.builder(redis.address()).sentinel("orders"),
                redis.address() + " is no Sentinel",
                "give the addresses of the Sentinels");
    }

    @Test
    void nameThatTheSentinelsDoNotWatch() {
        assertFails(
                sentinel,
                EmbeddedRedis.builder(sentinel.address()).sentinel("order"),
                "watches no primary 'order', but [orders]");
    }

    @Test
    void oneOfTwoSentinelsHasTheNames() {
        String both = "127.0.0.1:1;" + sentinel.address();
        assertFails(
                sentinel, EmbeddedRedis.builder(both).sentinel("order"), "watches no primary 'order', but [orders]");
    }

    @Test
    void addressOfASentinelWhereARedisIsExpected() {
        assertFails(
                sentinel,
                EmbeddedRedis.builder(sentinel.address()),
                sentinel.address() + " is a Sentinel",
                "give the name of the primary");
    }

    @Test
    void addressesOfSingleServersWhereAClusterIsExpected() {
        assertFails(
                redis,
                EmbeddedRedis.builder(redis.address() + ";" + sentinel.address()),
                redis.address() + " is no node of a Cluster",
                "give one address");
    }

    @Test
    void databaseThatTheServerDoesNotHave() {
        assertFails(
                redis,
                EmbeddedRedis.builder(URI.create("redis://" + redis.address() + "/4")),
                redis.address() + " has no database 4",
                "'databases'");
    }

    @Test
    void databaseOtherThan0InACluster() {
        assertFails(
                node,
                EmbeddedRedis.builder(URI.create("redis://" + node.address() + "/3")),
                node.address() + " is a node of a Cluster, which has only database 0");
    }

    @Test
    void ipv6AddressIsShownInBrackets() {
        try (EmbeddedRedis both = EmbeddedRedis.start("--bind", "127.0.0.1", "::1")) {
            String address = "[::1]:" + both.port();
            assertFails(
                    both,
                    EmbeddedRedis.builder(URI.create("redis://" + address + "/99")),
                    "cannot be used: " + address + " has no database 99");
        }
    }

    // ---- the settings are for the right kind

    /** The message was about the Sentinel that is down. */
    @Test
    void wrongPasswordOfThePrimaryIsTheReasonThoughASentinelIsDown() {
        JedisClientConfig unknown =
                EmbeddedRedis.patientClient().user("nobody").password("wr0ng").build();
        assertThatThrownBy(EmbeddedRedis.builder("127.0.0.1:1;" + sentinel.address())
                        .sentinel("orders")
                        .client(unknown)::build)
                .isInstanceOf(StorageUnavailableException.class)
                .hasMessageContaining("cannot be used: Redis denies the user or the password")
                .hasMessageContaining("check that it runs")
                .hasMessageNotContaining("127.0.0.1:1: ");
    }

    @Test
    void primaryThatIsDownIsTheReasonThoughASentinelIsDown() {
        try (EmbeddedRedis primary = EmbeddedRedis.start();
                EmbeddedRedis own = EmbeddedRedis.startSentinel("orders", primary)) {
            primary.kill();
            assertThatThrownBy(EmbeddedRedis.builder("127.0.0.1:1;" + own.address())
                            .sentinel("orders")::build)
                    .isInstanceOf(StorageUnavailableException.class)
                    .hasMessageContaining("cannot be used: no connection, or no reply in time; check that it runs");
        }
    }

    @Test
    void sentinelThatDemandsAPasswordIsNamedBesidesTheReason() {
        try (EmbeddedRedis own = EmbeddedRedis.startSentinel("orders", watched)) {
            try (Jedis jedis = own.jedis()) {
                jedis.aclSetUser("default", "resetpass", ">s3cret");
            }
            assertThatThrownBy(EmbeddedRedis.builder("127.0.0.1:1;" + own.address())
                            .sentinel("orders")::build)
                    .isInstanceOf(StorageUnavailableException.class)
                    .hasMessageContaining("cannot be used: no connection, or no reply in time (" + own.address()
                            + ": Redis demands a password, and none was given (NOAUTH)); check that it runs");
        }
    }

    @Test
    void nameThatASentinelDoesNotHaveWhoseUserMayNotAsk() {
        try (EmbeddedRedis own = EmbeddedRedis.startSentinel("orders", watched)) {
            try (Jedis jedis = own.jedis()) {
                jedis.aclSetUser("blind", "on", ">s3cret", "+@all", "-info");
            }
            JedisClientConfig blind = EmbeddedRedis.patientClient()
                    .user("blind")
                    .password("s3cret")
                    .build();
            assertThatThrownBy(EmbeddedRedis.builder(own.address())
                            .sentinel("order")
                            .sentinelClient(blind)::build)
                    .isInstanceOf(StorageUnavailableException.class)
                    .hasMessageContaining("cannot be used: the Sentinels have no primary of this name")
                    .hasMessageContaining("; check ")
                    .hasMessageNotContaining("Exception");
        }
    }

    /** A ClassCastException came out of the check. */
    @Test
    void serverThatRepliesInAnUnknownForm() throws IOException {
        try (FakeServer fake = new FakeServer(name -> name.equals("INFO") ? ":1\r\n" : "-ERR unknown command\r\n")) {
            assertThatThrownBy(EmbeddedRedis.builder(fake.address()).sentinel("orders")::build)
                    .isInstanceOf(StorageUnavailableException.class)
                    .hasMessageContaining("cannot be used: no connection, or no reply in time; check that it runs");
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void serversThatHangAreNotAllAskedAgain(boolean areSentinels) throws IOException {
        JedisClientConfig impatient =
                DefaultJedisClientConfig.builder().timeoutMillis(200).build();
        try (FakeServer one = new FakeServer(name -> "");
                FakeServer two = new FakeServer(name -> "");
                FakeServer three = new FakeServer(name -> "")) {
            Builder builder = RedisIdempotenceStorage.builder(
                            one.address() + ";" + two.address() + ";" + three.address())
                    .client(impatient);
            if (areSentinels) {
                builder.sentinel("orders").sentinelClient(impatient);
            }
            assertThatThrownBy(builder::build)
                    .isInstanceOf(StorageUnavailableException.class)
                    .hasMessageContaining("check that it runs")
                    .hasMessageNotContaining("(");
            IntSupplier connections = () -> one.connections() + two.connections() + three.connections();
            await("the servers have counted them").until(() -> connections.getAsInt() >= 3);
            assertThat(connections.getAsInt()).isLessThanOrEqualTo(areSentinels ? 4 : 3);
        }
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
    void hostThatIsUnknown() {
        assertThatThrownBy(EmbeddedRedis.builder("nowhere.invalid:6379")::build)
                .isInstanceOf(StorageUnavailableException.class)
                .hasMessageContaining("its host is unknown");
    }
}
