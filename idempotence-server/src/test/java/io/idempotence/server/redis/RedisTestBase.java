package io.idempotence.server.redis;

import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.StorageKey;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import redis.clients.jedis.Jedis;

/** One Redis for a class, a storage on it, and a connection that sees what is stored under the key of each test. */
abstract class RedisTestBase {
    static EmbeddedRedis redis;
    static RedisIdempotenceStorage storage;
    static Jedis jedis;

    final StorageKey key = Claims.newKey();
    final byte[] rawKey = key.value().getBytes(StandardCharsets.US_ASCII);

    @BeforeAll
    static void start() {
        redis = EmbeddedRedis.start();
        storage = redis.connect();
        jedis = redis.jedis();
    }

    @AfterAll
    static void stop() {
        jedis.close();
        storage.close();
        redis.close();
    }
}
