package io.idempotence.server.redis;

import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.StorageProperties;
import java.time.Duration;
import net.jqwik.api.Tag;
import net.jqwik.api.lifecycle.AfterContainer;
import net.jqwik.api.lifecycle.BeforeContainer;

@Tag("redis-7")
class RedisPropertiesTest extends StorageProperties {
    private static EmbeddedRedis redis;
    private static RedisIdempotenceStorage storage;

    @BeforeContainer
    static void start() {
        redis = EmbeddedRedis.start();
        storage = redis.connect();
    }

    @AfterContainer
    static void stop() {
        storage.close();
        redis.close();
    }

    @Override
    protected IdempotenceStorage storage() {
        return storage;
    }

    @Override
    protected void letPass(Duration duration) {
        ServerTime.letPass(redis, duration);
    }
}
