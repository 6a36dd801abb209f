package io.idempotence.server.redis;

import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorageContract;
import java.time.Duration;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;

@Tag("redis-7")
class RedisIdempotenceStorageTest extends IdempotenceStorageContract {
    private static EmbeddedRedis redis;

    @BeforeAll
    static void start() {
        redis = EmbeddedRedis.start();
    }

    @AfterAll
    static void stop() {
        redis.close();
    }

    @Override
    protected IdempotenceStorage createStorage() {
        return RedisIdempotenceStorage.connect(redis.address());
    }

    @Override
    protected void letPass(Duration duration) {
        ServerTime.letPass(redis, duration);
    }
}
