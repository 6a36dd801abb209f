package io.idempotence.server.redis.internal.jedis;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.server.redis.EmbeddedRedis;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import redis.clients.jedis.Connection;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.providers.PooledConnectionProvider;

/** Generations of connections. */
@Tag("redis-7")
@Tag("jedis")
class PooledRedisTest {
    private EmbeddedRedis redis;

    @BeforeEach
    void start() {
        redis = EmbeddedRedis.start();
    }

    @AfterEach
    void stop() {
        redis.close();
    }

    @Test
    @Timeout(value = 30, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    void connectionThatIsOpenedWhileOthersAreDroppedIsUsed() {
        HostAndPort address = new HostAndPort(redis.host(), redis.port());
        PooledRedis.ConnectionLimits limits =
                new PooledRedis.ConnectionLimits(1, Duration.ofSeconds(20), Duration.ofSeconds(20));
        AtomicInteger opened = new AtomicInteger();
        AtomicReference<PooledRedis.SharedServer> server = new AtomicReference<>();
        try (PooledConnectionProvider provider = new PooledConnectionProvider(address);
                PooledRedis pooled = new PooledRedis.Primary("Redis", provider, limits, null, () -> {})) {
            server.set(pooled.new SharedServer(() -> {
                opened.incrementAndGet();
                server.get().dropConnections();
                return new Connection(
                        address,
                        DefaultJedisClientConfig.builder().timeoutMillis(20_000).build());
            }));
            try (Connection connection = server.get().connection()) {
                assertThat(connection.ping()).isTrue();
                assertThat(opened).hasValue(1);
            }
        }
    }
}
