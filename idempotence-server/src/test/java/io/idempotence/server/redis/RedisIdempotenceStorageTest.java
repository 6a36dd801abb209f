package io.idempotence.server.redis;

import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorageContract;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import redis.clients.jedis.JedisClientConfig;

/** As a user with an operator's documented rights. */
@Tag("redis-7")
class RedisIdempotenceStorageTest extends IdempotenceStorageContract {
    private static EmbeddedRedis redis;
    private static JedisClientConfig user;

    @BeforeAll
    static void start() {
        redis = EmbeddedRedis.start();
        user = Rights.applicationAnd(List.of(redis), "scan");
    }

    @AfterAll
    static void stop() {
        redis.close();
    }

    @Override
    protected IdempotenceStorage createStorage() {
        return RedisIdempotenceStorage.builder(redis.address()).client(user).build();
    }

    @Override
    protected void letPass(Duration duration) {
        ServerTime.letPass(redis, duration);
    }
}
