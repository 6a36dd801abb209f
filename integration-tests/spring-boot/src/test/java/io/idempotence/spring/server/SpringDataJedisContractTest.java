package io.idempotence.spring.server;

import io.idempotence.server.redis.RedisIdempotenceStorage;
import io.idempotence.server.redis.RedisOfAClass;
import io.idempotence.server.redis.ServerTime;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorageContract;
import java.time.Duration;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.jedis.JedisConnectionFactory;

/** The contract of every storage, over the connections of Spring Data with Jedis. */
@Tag("all")
class SpringDataJedisContractTest extends IdempotenceStorageContract {
    @RegisterExtension
    private static final RedisOfAClass redis = new RedisOfAClass();

    private static JedisConnectionFactory connections;

    @BeforeAll
    static void connect() {
        connections = new JedisConnectionFactory(
                new RedisStandaloneConfiguration("127.0.0.1", redis.server().port()));
        connections.afterPropertiesSet();
        connections.start();
    }

    @AfterAll
    static void disconnect() {
        connections.destroy();
    }

    @Override
    protected IdempotenceStorage createStorage() {
        return RedisIdempotenceStorage.over(SpringDataCommands.of(connections, Duration.ofSeconds(5)));
    }

    @Override
    protected void letPass(Duration duration) {
        ServerTime.letPass(redis.server(), duration);
    }
}
