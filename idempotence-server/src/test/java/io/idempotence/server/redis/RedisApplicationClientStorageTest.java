package io.idempotence.server.redis;

import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorageContract;
import java.time.Duration;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.RegisterExtension;
import redis.clients.jedis.UnifiedJedis;

/** The storage contract over a Jedis client of the application. */
@Tag("redis-7")
@Tag("jedis")
class RedisApplicationClientStorageTest extends IdempotenceStorageContract {
    @RegisterExtension
    private static final RedisOfAClass redis = new RedisOfAClass();

    private static UnifiedJedis client;

    @BeforeAll
    static void connect() {
        client = ApplicationsClients.oneServer(
                ApplicationsClients.ofOneServer().get(0), redis.server().port());
    }

    @AfterAll
    static void disconnect() {
        client.close();
    }

    @Override
    protected IdempotenceStorage createStorage() {
        return RedisIdempotenceStorage.using(client);
    }

    @Override
    protected void letPass(Duration duration) {
        ServerTime.letPass(redis.server(), duration);
    }
}
