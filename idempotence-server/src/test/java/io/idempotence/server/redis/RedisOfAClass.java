package io.idempotence.server.redis;

import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * One real Redis for all tests of a class. Register it as a {@code @RegisterExtension} in a static field of the class or of a superclass.
 */
public final class RedisOfAClass implements BeforeAllCallback, AfterAllCallback {
    private EmbeddedRedis redis;

    @Override
    public void beforeAll(ExtensionContext context) {
        redis = EmbeddedRedis.start();
    }

    @Override
    public void afterAll(ExtensionContext context) {
        redis.close();
    }

    /** The server, while the tests of the class run. */
    public EmbeddedRedis server() {
        return redis;
    }

    /** A new storage on it, which the caller closes. */
    public RedisIdempotenceStorage connect() {
        return redis.connect();
    }
}
