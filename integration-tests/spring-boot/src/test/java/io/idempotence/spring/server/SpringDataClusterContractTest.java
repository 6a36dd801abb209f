package io.idempotence.spring.server;

import io.idempotence.server.redis.EmbeddedRedisCluster;
import io.idempotence.server.redis.RedisIdempotenceStorage;
import io.idempotence.server.redis.ServerTime;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.IdempotenceStorageContract;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.springframework.data.redis.connection.RedisClusterConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/** The contract of every storage, over the connections of Spring Data to a Cluster with Lettuce. */
@Tag("all")
class SpringDataClusterContractTest extends IdempotenceStorageContract {
    private static EmbeddedRedisCluster cluster;
    private static LettuceConnectionFactory connections;

    @BeforeAll
    static void start() {
        cluster = EmbeddedRedisCluster.start();
        connections = new LettuceConnectionFactory(
                new RedisClusterConfiguration(List.of(cluster.addresses().split(";", -1))));
        connections.afterPropertiesSet();
        connections.start();
    }

    @AfterAll
    static void stop() {
        connections.destroy();
        cluster.close();
    }

    @Override
    protected IdempotenceStorage createStorage() {
        return RedisIdempotenceStorage.over(SpringDataCommands.of(connections, Duration.ofSeconds(5)));
    }

    @Override
    protected void letPass(Duration duration) {
        ServerTime.letPass(cluster.nodes().get(0), duration);
    }
}
