package io.idempotence.spring.server;

import static org.assertj.core.api.Assertions.as;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.InstanceOfAssertFactories.STRING;
import static org.awaitility.Awaitility.await;

import ch.qos.logback.classic.spi.ILoggingEvent;
import io.idempotence.server.CapturedLog;
import io.idempotence.server.redis.EmbeddedRedis;
import io.idempotence.server.redis.RedisIdempotenceStorage;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import io.idempotence.server.storage.StorageUnavailableException.Certainty;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.beans.factory.DisposableBean;
import org.springframework.beans.factory.InitializingBean;
import org.springframework.context.SmartLifecycle;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.jedis.JedisConnectionFactory;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import redis.clients.jedis.Jedis;

/** Tests that what a Redis refuses, has forgotten or lost is told apart with each driver of Spring Data. */
class SpringDataTroubleTest {
    enum Driver {
        LETTUCE(LettuceConnectionFactory::new),
        JEDIS(JedisConnectionFactory::new);

        private final Function<RedisStandaloneConfiguration, RedisConnectionFactory> connections;

        Driver(Function<RedisStandaloneConfiguration, RedisConnectionFactory> connections) {
            this.connections = connections;
        }
    }

    /** A timeout that a test waits for, and longer than a busy machine pauses. */
    private static final Duration WAITED_FOR = Duration.ofSeconds(2);

    private final List<DisposableBean> toDestroy = new ArrayList<>();
    private EmbeddedRedis redis;
    private Jedis jedis;

    @BeforeEach
    void start() {
        redis = EmbeddedRedis.start();
        jedis = redis.jedis();
    }

    @AfterEach
    void stop() throws Exception {
        for (DisposableBean each : toDestroy) {
            each.destroy();
        }
        jedis.close();
        redis.close();
    }

    private IdempotenceStorage storage(Driver driver) throws Exception {
        return storage(driver, redis);
    }

    private IdempotenceStorage storage(Driver driver, EmbeddedRedis server) throws Exception {
        return storage(driver, server, Duration.ofSeconds(20));
    }

    private IdempotenceStorage storage(Driver driver, EmbeddedRedis server, Duration timeout) throws Exception {
        RedisConnectionFactory connections =
                driver.connections.apply(new RedisStandaloneConfiguration(server.host(), server.port()));
        ((InitializingBean) connections).afterPropertiesSet();
        ((SmartLifecycle) connections).start();
        toDestroy.add((DisposableBean) connections);
        return RedisIdempotenceStorage.over(SpringDataCommands.of(connections, timeout));
    }

    /** The first claim connects and loads classes. On a busy machine that takes longer than the timeout. */
    private static void warmUp(IdempotenceStorage storage) {
        await().ignoreExceptions().untilAsserted(() -> Claims.claim(storage, Claims.newKey()));
    }

    @ParameterizedTest
    @EnumSource
    void scriptsAreSentAgainToARedisThatForgotThem(Driver driver) throws Exception {
        IdempotenceStorage storage = storage(driver);
        Claims.claim(storage, Claims.newKey());
        jedis.scriptFlush();
        assertThat(storage.claim(Claims.request(Claims.newKey()))).isInstanceOf(ClaimResult.Claimed.class);
    }

    @ParameterizedTest
    @EnumSource
    void recordsThatCannotBeReadAreReportedAsSuch(Driver driver) throws Exception {
        StorageKey key = Claims.newKey();
        jedis.set(key.value(), "short");
        IdempotenceStorage storage = storage(driver);
        assertThatThrownBy(() -> storage.claim(Claims.request(key))).isInstanceOf(CorruptRecordException.class);
    }

    @ParameterizedTest
    @EnumSource
    void aFullRedisRefusesAndIsNoOutage(Driver driver) throws Exception {
        try (EmbeddedRedis full = EmbeddedRedis.start("--maxmemory", "1")) {
            IdempotenceStorage storage = storage(driver, full);
            assertThatThrownBy(() -> storage.claim(Claims.request(Claims.newKey())))
                    .isInstanceOfSatisfying(
                            StorageUnavailableException.class,
                            e -> assertThat(e.certainty()).isEqualTo(Certainty.REFUSED))
                    .hasMessageContaining("Redis replied OOM");
        }
    }

    @ParameterizedTest
    @EnumSource
    void aRedisThatGoesDownMayHaveClaimed(Driver driver) throws Exception {
        EmbeddedRedis failing = EmbeddedRedis.start();
        IdempotenceStorage storage = storage(driver, failing, WAITED_FOR);
        warmUp(storage);
        failing.close();
        assertThatThrownBy(() -> storage.claim(Claims.request(Claims.newKey())))
                .isInstanceOfSatisfying(
                        StorageUnavailableException.class,
                        e -> assertThat(e.nothingWritten()).isFalse())
                .hasMessageContaining("could not claim");
    }

    @Test
    void aReplyThatLettuceWaitsForInVainIsNamed() throws Exception {
        IdempotenceStorage storage = storage(Driver.LETTUCE, redis, WAITED_FOR);
        warmUp(storage);
        jedis.clientPause(60_000);
        assertThatThrownBy(() -> storage.find(Claims.newKey()))
                .isInstanceOfSatisfying(
                        StorageUnavailableException.class,
                        e -> assertThat(e.nothingWritten()).isFalse())
                .hasMessageContaining("could not find: no reply within 2000 ms");
    }

    @ParameterizedTest
    @EnumSource
    void aMissingRightIsNamed(Driver driver) throws Exception {
        jedis.aclSetUser("default", "-scan", "-pttl");
        IdempotenceStorage storage = storage(driver);
        assertThatThrownBy(() -> storage.list("payments").count())
                .isInstanceOf(StorageUnavailableException.class)
                .hasMessageContaining("could not list: the Redis user lacks the right");
        assertThatThrownBy(() -> storage.find(Claims.newKey()))
                .isInstanceOf(StorageUnavailableException.class)
                .hasMessageContaining("could not find: the Redis user lacks the right");
    }

    @ParameterizedTest
    @EnumSource
    void listsNeedNoRightToOtherKeys(Driver driver) throws Exception {
        jedis.aclSetUser("default", "resetkeys", "~" + StorageKey.prefix("payments") + "*");
        IdempotenceStorage storage = storage(driver);
        StorageKey key = Claims.newKey();
        Claims.claim(storage, key);
        assertThat(storage.list("payments")).singleElement().returns(key, IdempotenceRecord::key);
    }

    @ParameterizedTest
    @EnumSource
    void aServerThatMayEvictRecordsIsWarnedOfOnce(Driver driver) throws Exception {
        try (EmbeddedRedis evicting = EmbeddedRedis.start("--appendonly", "yes", "--maxmemory-policy", "allkeys-lru");
                CapturedLog log = CapturedLog.of(RedisIdempotenceStorage.class)) {
            IdempotenceStorage storage = storage(driver, evicting);
            assertThat(log.warnings()).as("before the first call").isEmpty();
            Claims.claim(storage, Claims.newKey());
            Claims.claim(storage, Claims.newKey());
            assertThat(log.warnings())
                    .extracting(ILoggingEvent::getFormattedMessage)
                    .singleElement(as(STRING))
                    .contains("Redis (the application's ", "set noeviction");
        }
    }
}
