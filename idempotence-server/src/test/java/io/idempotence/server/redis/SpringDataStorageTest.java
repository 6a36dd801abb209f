package io.idempotence.server.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorageContract;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import java.time.Duration;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceClientConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import redis.clients.jedis.Jedis;

/** The storage contract over an application's Spring Data connections, with Lettuce. */
@Tag("redis-7")
class SpringDataStorageTest extends IdempotenceStorageContract {
    @RegisterExtension
    private static final RedisOfAClass redis = new RedisOfAClass();

    private static LettuceConnectionFactory connections;

    @BeforeAll
    static void connect() {
        connections = connectionsTo(redis.server().port());
    }

    static LettuceConnectionFactory connectionsTo(int port) {
        LettuceConnectionFactory factory = new LettuceConnectionFactory(
                new RedisStandaloneConfiguration("127.0.0.1", port),
                LettuceClientConfiguration.builder()
                        .commandTimeout(Duration.ofSeconds(1))
                        .build());
        factory.afterPropertiesSet();
        factory.start();
        return factory;
    }

    @AfterAll
    static void disconnect() {
        connections.destroy();
    }

    @Override
    protected IdempotenceStorage createStorage() {
        return over(connections);
    }

    private static IdempotenceStorage over(LettuceConnectionFactory connections) {
        return RedisIdempotenceStorage.over(new SpringDataRedis(connections));
    }

    @Override
    protected void letPass(Duration duration) {
        ServerTime.letPass(redis.server(), duration);
    }

    @Test
    void scriptsAreSentAgainToARedisThatForgotThem() {
        try (Jedis jedis = redis.server().jedis()) {
            jedis.scriptFlush();
        }
        assertThat(createStorage().claim(Claims.request(Claims.newKey()))).isInstanceOf(ClaimResult.Claimed.class);
    }

    @Test
    void recordsThatCannotBeReadAreReportedAsSuch() {
        StorageKey key = Claims.newKey();
        try (Jedis jedis = redis.server().jedis()) {
            jedis.set(key.value(), "short");
        }
        assertThatThrownBy(() -> createStorage().claim(Claims.request(key))).isInstanceOf(CorruptRecordException.class);
    }

    @Test
    void aFullRedisRefusesAndIsNoOutage() {
        try (EmbeddedRedis full = EmbeddedRedis.start("--maxmemory", "1");
                Closing of = new Closing(connectionsTo(full.port()))) {
            assertThatThrownBy(() -> over(of.connections()).claim(Claims.request(Claims.newKey())))
                    .isInstanceOfSatisfying(
                            StorageUnavailableException.class,
                            e -> assertThat(e.certainty()).isEqualTo(StorageUnavailableException.Certainty.REFUSED))
                    .hasMessageContaining("Redis replied OOM");
        }
    }

    @Test
    void aRedisThatIsDownMayHaveClaimed() {
        EmbeddedRedis down = EmbeddedRedis.start();
        try (Closing of = new Closing(connectionsTo(down.port()))) {
            over(of.connections()).claim(Claims.request(Claims.newKey()));
            down.close();

            assertThatThrownBy(() -> over(of.connections()).claim(Claims.request(Claims.newKey())))
                    .isInstanceOfSatisfying(
                            StorageUnavailableException.class,
                            e -> assertThat(e.nothingWritten()).isFalse())
                    .hasMessageContaining("could not claim");
        }
    }

    @Test
    void aMissingRightIsNamed() {
        try (EmbeddedRedis redis = EmbeddedRedis.start();
                Closing of = new Closing(connectionsTo(redis.port()))) {
            try (Jedis jedis = redis.jedis()) {
                jedis.aclSetUser("default", "-scan", "-pttl");
            }
            IdempotenceStorage storage = over(of.connections());
            assertThatThrownBy(() -> storage.list("payments").count())
                    .isInstanceOf(StorageUnavailableException.class)
                    .hasMessageContaining("could not list: the Redis user lacks the right");
            assertThatThrownBy(() -> storage.find(Claims.newKey()))
                    .isInstanceOf(StorageUnavailableException.class)
                    .hasMessageContaining("could not find: the Redis user lacks the right");
        }
    }

    private record Closing(LettuceConnectionFactory connections) implements AutoCloseable {
        @Override
        public void close() {
            connections.destroy();
        }
    }
}
