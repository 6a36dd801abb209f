package io.idempotence.server.redis;

import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorageContract;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.RegisterExtension;
import redis.clients.jedis.JedisClientConfig;

/** The storage contract on a single Redis server, as a user with the documented rights of an operator. */
@Tag("redis-7")
@Tag("jedis")
class RedisIdempotenceStorageTest extends IdempotenceStorageContract {
    @RegisterExtension
    private static final RedisOfAClass redis = new RedisOfAClass();

    private static JedisClientConfig user;

    @BeforeAll
    static void giveRights() {
        user = Rights.applicationAnd(List.of(redis.server()), "scan");
    }

    @Override
    protected IdempotenceStorage createStorage() {
        return EmbeddedRedis.builder(redis.server().address()).client(user).build();
    }

    @Override
    protected void letPass(Duration duration) {
        ServerTime.letPass(redis.server(), duration);
    }
}
