package io.idempotence.it.pair;

import io.idempotence.server.redis.RedisOfAClass;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Both instances of the provider on one Redis, which stays well. */
abstract class RedisPairTestBase extends PairTestBase {
    @RegisterExtension
    private static final RedisOfAClass redis = new RedisOfAClass();

    @BeforeEach
    final void startProvider() {
        startProvider(() -> redis.connect());
    }
}
