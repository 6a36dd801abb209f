package io.idempotence.it.pair;

import io.idempotence.server.redis.EmbeddedRedis;
import io.idempotence.server.redis.RedisIdempotenceStorage;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;

/** Both instances of the provider on one Redis, which stays well. */
abstract class RedisPairTestBase extends PairTestBase {
    private static EmbeddedRedis redis;

    @BeforeAll
    static void startRedis() {
        redis = EmbeddedRedis.start();
    }

    @AfterAll
    static void stopRedis() {
        redis.close();
    }

    @BeforeEach
    final void startProvider() {
        startProvider(() -> RedisIdempotenceStorage.connect(redis.address()));
    }
}
