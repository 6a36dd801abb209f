package io.idempotence.server.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.IdempotenceRecord.Resolution;
import io.idempotence.server.storage.IdempotenceRecord.State;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import io.idempotence.server.storage.WriteResult;
import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.JedisClientConfig;

/**
 * The documented rights of a user of Redis: each is needed. That they are enough is shown by the contract, which runs with them
 * on every kind of Redis.
 */
@Tag("redis-7")
@Tag("jedis")
class RedisRightsTest extends RedisTestBase {
    static Stream<String> ofAnOperator() {
        return Stream.concat(Rights.OF_AN_APPLICATION.stream(), Stream.of("scan"));
    }

    @ParameterizedTest
    @MethodSource("ofAnOperator")
    void withoutOneOfItsRightsAUserCannotDoAll(String missing) {
        useAll(Rights.user(List.of(redis), ofAnOperator().toList()));
        JedisClientConfig user = Rights.user(
                List.of(redis),
                ofAnOperator().filter(right -> !right.equals(missing)).toList());

        assertThatThrownBy(() -> useAll(user))
                .isInstanceOf(StorageUnavailableException.class)
                .hasMessageContaining("right");
    }

    static Stream<String> ofAnApplication() {
        return Rights.OF_AN_APPLICATION.stream();
    }

    @ParameterizedTest
    @MethodSource("ofAnApplication")
    void aRightThatIsMissingIsNamedAtStart(String missing) {
        JedisClientConfig user = Rights.user(
                List.of(redis),
                Rights.OF_AN_APPLICATION.stream()
                        .filter(right -> !right.equals(missing))
                        .toList());

        assertThatThrownBy(() -> open(user, EmbeddedRedis.patientPool()))
                .isInstanceOf(StorageUnavailableException.class)
                .hasMessageContaining("the Redis user lacks the right +" + missing)
                .hasMessageContaining("ACL SETUSER <user> +" + missing)
                .hasMessageNotContaining(Rights.PASSWORD);
    }

    @Test
    void missingRightToTheKeysOfRecordsFailsTheStart() {
        jedis.aclSetUser("elsewhere", "reset", "on", ">" + Rights.PASSWORD, "~other:*", "+@all");
        JedisClientConfig user = EmbeddedRedis.patientClient()
                .user("elsewhere")
                .password(Rights.PASSWORD)
                .build();
        assertThatThrownBy(() -> open(user, EmbeddedRedis.patientPool()))
                .isInstanceOf(StorageUnavailableException.class)
                .hasMessageContaining("ACL SETUSER <user> ~idem:*");
    }

    @Test
    void missingRightToWaitForReplicasFailsTheStart() {
        JedisClientConfig user = Rights.applicationAnd(List.of(redis));
        assertThatThrownBy(() -> RedisIdempotenceStorage.builder(redis.address())
                        .client(user)
                        .waitForReplicas(1, Duration.ofMillis(100))
                        .build())
                .isInstanceOf(StorageUnavailableException.class)
                .hasMessageContaining("the Redis user lacks the right +wait")
                .hasMessageContaining("ACL SETUSER <user> +wait");
    }

    @Test
    void aClaimUnderWhichTheRightToWaitWasTakenAwayIsGivenBack() {
        JedisClientConfig user = Rights.applicationAnd(List.of(redis), "wait");
        try (EmbeddedRedis replica = EmbeddedRedis.startReplicaOf(redis);
                RedisIdempotenceStorage careful = EmbeddedRedis.builder(redis.address())
                        .client(user)
                        .waitForReplicas(1, Duration.ofSeconds(5))
                        .build()) {
            Claims.claim(careful, Claims.newKey());
            jedis.aclSetUser(user.getUser(), "-wait");

            assertThatThrownBy(() -> careful.claim(Claims.request(key)))
                    .isInstanceOfSatisfying(
                            StorageUnavailableException.class,
                            e -> assertThat(e.certainty()).isEqualTo(StorageUnavailableException.Certainty.GIVEN_BACK))
                    .hasMessageContaining("ACL SETUSER <user> +wait");
            assertThat(storage.find(key).orElseThrow().state()).isEqualTo(State.RELEASED);
            assertThat(replica.port()).isPositive();
        }
    }

    private static void useAll(JedisClientConfig user) {
        jedis.scriptFlush();
        String namespace = "rights";
        StorageKey key = Claims.newKey(namespace);
        try (RedisIdempotenceStorage storage = open(user, EmbeddedRedis.patientPool())) {
            Claim claim = Claims.claim(storage, key);
            storage.claim(Claims.request(key));
            storage.renew(claim, Claims.LEASE);
            storage.markUnknown(claim, Claims.RETENTION);
            try (Stream<IdempotenceRecord> records = storage.list(namespace)) {
                assertThat(records).hasSize(1);
            }
            assertThat(storage.resolve(key, 1, Resolution.NOT_APPLIED, Claims.RETENTION))
                    .isTrue();
            Claim second = Claims.claim(storage, key);
            assertThat(storage.complete(second, new byte[1], Claims.RETENTION)).isEqualTo(new WriteResult.Done());
            assertThat(storage.deleteUnchanged(key, storage.find(key).orElseThrow()))
                    .isTrue();
            assertThat(storage.delete(key)).isFalse();
            assertThat(storage.resolve(key, 1, Resolution.APPLIED, Claims.RETENTION))
                    .isFalse();
            assertThat(storage.toString()).doesNotContain(Rights.PASSWORD);
        } finally {
            storage.delete(key);
        }
    }

    @Test
    void anotherDatabaseThanTheFirstNeedsSelect() {
        JedisClientConfig without = database3(Rights.applicationAnd(List.of(redis)));
        assertThatThrownBy(() -> open(without, EmbeddedRedis.patientPool()))
                .isInstanceOf(StorageUnavailableException.class);
        JedisClientConfig with = database3(Rights.applicationAnd(List.of(redis), "select"));
        try (RedisIdempotenceStorage third = open(with, EmbeddedRedis.patientPool())) {
            Claims.claim(third, key);
            assertThat(storage.find(key)).isEmpty();
        }
    }

    private static JedisClientConfig database3(JedisClientConfig user) {
        return DefaultJedisClientConfig.builder().from(user).database(3).build();
    }

    /** The pool asks its idle connections now and then whether they are alive. */
    @Test
    void idleConnectionsThatRespondStayOpen() {
        ConnectionPoolConfig often = EmbeddedRedis.patientPool();
        often.setTimeBetweenEvictionRuns(Duration.ofMillis(20));
        jedis.configResetStat();
        JedisClientConfig user = Rights.applicationAnd(List.of(redis));
        try (RedisIdempotenceStorage idle = open(user, often)) {
            idle.find(key);
            // Two, if the pool asks the first one just when it is wanted.
            List<String> opened = connections(user);
            assertThat(opened).isNotEmpty();
            await().until(() -> jedis.info("commandstats").matches("(?s).*cmdstat_ping:calls=\\d{2,},.*"));
            assertThat(connections(user)).containsAll(opened);
        }
    }

    private static RedisIdempotenceStorage open(JedisClientConfig user, ConnectionPoolConfig pool) {
        return RedisIdempotenceStorage.builder(redis.address())
                .client(user)
                .pool(pool)
                .build();
    }

    /** The numbers of its connections, which Redis never uses again. */
    private static List<String> connections(JedisClientConfig user) {
        return jedis.clientList()
                .lines()
                .filter(line -> line.contains(" user=" + user.getUser() + " "))
                .map(line -> line.substring(0, line.indexOf(' ')))
                .toList();
    }
}
