package io.idempotence.it.pair;

import io.idempotence.server.redis.RedisOfAClass;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.extension.RegisterExtension;

/** The base of tests with both instances of the provider on one Redis, which does not fail. */
abstract class RedisPairTestBase extends PairTestBase {
    @RegisterExtension
    private static final RedisOfAClass redis = new RedisOfAClass();

    @BeforeEach
    final void startProvider() {
        startProvider(() -> redis.connect());
    }
}
