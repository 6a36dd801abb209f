package io.idempotence.server.redis;

import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorageContract;
import java.time.Duration;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.RegisterExtension;

@Tag("redis-7")
class RedisIdempotenceStorageTest extends IdempotenceStorageContract {
    @RegisterExtension
    private static final RedisOfAClass redis = new RedisOfAClass();

    @Override
    protected IdempotenceStorage createStorage() {
        return redis.connect();
    }

    @Override
    protected void letPass(Duration duration) {
        ServerTime.letPass(redis.server(), duration);
    }
}
