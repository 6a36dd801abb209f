package io.idempotence.it.fault;

import io.idempotence.server.redis.EmbeddedRedis;
import org.junit.jupiter.api.Tag;

@Tag("all")
class ClocksApartOnRedisIT extends ClocksApartContract {
    private EmbeddedRedis redis;

    @Override
    String startStorage() {
        redis = EmbeddedRedis.start();
        return redis.address();
    }

    @Override
    void stopStorage() {
        redis.close();
    }
}
