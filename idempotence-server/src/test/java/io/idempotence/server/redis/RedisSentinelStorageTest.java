package io.idempotence.server.redis;

import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorageContract;
import java.time.Duration;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;

/** The storage contract behind Sentinels, with waiting for replicas. */
@Tag("all")
@Tag("redis-7")
@Tag("jedis")
class RedisSentinelStorageTest extends IdempotenceStorageContract {
    private static EmbeddedRedisSentinel redis;

    @BeforeAll
    static void start() {
        redis = EmbeddedRedisSentinel.start();
    }

    @AfterAll
    static void stop() {
        redis.close();
    }

    @Override
    protected IdempotenceStorage createStorage() {
        return RedisSentinelTest.connect(redis);
    }

    @Override
    protected void letPass(Duration duration) {
        ServerTime.letPass(redis.primary(), duration);
    }
}
