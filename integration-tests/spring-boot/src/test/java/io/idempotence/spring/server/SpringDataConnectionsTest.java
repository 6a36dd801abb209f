package io.idempotence.spring.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.idempotence.server.redis.EmbeddedRedis;
import io.idempotence.server.redis.EmbeddedRedisCluster;
import io.idempotence.server.redis.EmbeddedRedisSentinel;
import io.idempotence.server.redis.RedisIdempotenceStorage;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.Claims;
import io.idempotence.server.storage.IdempotenceRecord;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.server.storage.StorageKey;
import io.idempotence.server.storage.StorageUnavailableException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletionService;
import java.util.concurrent.ExecutorCompletionService;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.DisposableBean;
import org.springframework.beans.factory.InitializingBean;
import org.springframework.context.SmartLifecycle;
import org.springframework.data.redis.connection.RedisClusterConfiguration;
import org.springframework.data.redis.connection.RedisClusterConnection;
import org.springframework.data.redis.connection.RedisClusterNode;
import org.springframework.data.redis.connection.RedisConnection;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.RedisSentinelConfiguration;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.jedis.JedisConnectionFactory;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/** Records through every kind of connections that Spring Data has: each driver, each topology. */
class SpringDataConnectionsTest {
    @Test
    void keepRecordsInAStandaloneServer() throws Exception {
        try (EmbeddedRedis redis = EmbeddedRedis.start()) {
            keepRecords(new JedisConnectionFactory(place(redis)));
            keepRecords(new LettuceConnectionFactory(place(redis)));
        }
    }

    @Test
    void keepRecordsBehindSentinels() throws Exception {
        try (EmbeddedRedisSentinel redis = EmbeddedRedisSentinel.start()) {
            RedisSentinelConfiguration place =
                    new RedisSentinelConfiguration(EmbeddedRedisSentinel.NAME, servers(redis.addresses()));
            keepRecords(new LettuceConnectionFactory(place));
            keepRecords(new JedisConnectionFactory(place));
        }
    }

    @Test
    void keepRecordsInACluster() throws Exception {
        try (EmbeddedRedisCluster redis = EmbeddedRedisCluster.start()) {
            RedisClusterConfiguration place = new RedisClusterConfiguration(servers(redis.addresses()));
            keepRecords(new LettuceConnectionFactory(place));
            keepRecords(new JedisConnectionFactory(place));
        }
    }

    @Test
    void nothingIsSentWhileAnotherThreadStillConnects() throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(2);
        try (EmbeddedRedis redis = EmbeddedRedis.start()) {
            LettuceConnectionFactory connections = started(new LettuceConnectionFactory(place(redis)));
            IdempotenceStorage storage =
                    RedisIdempotenceStorage.over(SpringDataCommands.of(connections, Duration.ofMillis(200)));
            redis.pause();
            try {
                CompletionService<ClaimResult> claims = new ExecutorCompletionService<>(threads);
                claims.submit(() -> storage.claim(Claims.request(Claims.newKey())));
                claims.submit(() -> storage.claim(Claims.request(Claims.newKey())));

                assertThatThrownBy(() -> claims.take().get())
                        .hasMessageContaining("another thread is still connecting")
                        .cause()
                        .isInstanceOfSatisfying(
                                StorageUnavailableException.class,
                                refused -> assertThat(refused.nothingWritten()).isTrue());
            } finally {
                redis.resume();
                connections.destroy();
            }
        } finally {
            threads.shutdownNow();
        }
    }

    @Test
    void claimsDoNotWaitForEachOtherOnceThereIsAConnection() throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(3);
        try (EmbeddedRedis full = EmbeddedRedis.start("--maxmemory", "1")) {
            LettuceConnectionFactory connections = started(new LettuceConnectionFactory(place(full)));
            IdempotenceStorage storage =
                    RedisIdempotenceStorage.over(SpringDataCommands.of(connections, Duration.ofMillis(300)));
            Callable<ClaimResult> claim = () -> storage.claim(Claims.request(Claims.newKey()));
            // A busy machine may take longer for the connection.
            await().untilAsserted(() -> assertThatThrownBy(claim::call).hasMessageContaining("OOM"));
            full.pause();
            try {
                for (Future<ClaimResult> each : threads.invokeAll(List.of(claim, claim, claim))) {
                    assertThatThrownBy(each::get).rootCause().isInstanceOf(TimeoutException.class);
                }
            } finally {
                full.resume();
                connections.destroy();
            }
        } finally {
            threads.shutdownNow();
        }
    }

    @Test
    void listsEveryPrimaryOfAClusterInWhateverOrderItsNodesAreNamed() throws Exception {
        try (EmbeddedRedisCluster redis = EmbeddedRedisCluster.start()) {
            keepRecords(new InAnotherOrder(new RedisClusterConfiguration(servers(redis.addresses()))));
        }
    }

    /** A client that returns the nodes of the Cluster in another order each time, as with Jedis, which asks any of them. */
    private static final class InAnotherOrder extends LettuceConnectionFactory {
        private final AtomicInteger asked = new AtomicInteger();

        InAnotherOrder(RedisClusterConfiguration place) {
            super(place);
        }

        @Override
        public RedisConnection getConnection() {
            RedisClusterConnection real = (RedisClusterConnection) super.getConnection();
            return (RedisConnection) Proxy.newProxyInstance(
                    getClass().getClassLoader(),
                    new Class<?>[] {RedisClusterConnection.class},
                    (self, method, args) -> {
                        Object reply = method.invoke(real, args);
                        if (method.getName().equals("clusterGetNodes")) {
                            List<RedisClusterNode> nodes = new ArrayList<>();
                            ((Iterable<?>) reply).forEach(node -> nodes.add((RedisClusterNode) node));
                            nodes.sort(Comparator.comparing(RedisClusterNode::getId));
                            Collections.rotate(nodes, asked.getAndIncrement());
                            return nodes;
                        }
                        return reply;
                    });
        }
    }

    private static RedisStandaloneConfiguration place(EmbeddedRedis redis) {
        return new RedisStandaloneConfiguration(redis.host(), redis.port());
    }

    private static <F extends InitializingBean & SmartLifecycle> F started(F connections) throws Exception {
        connections.afterPropertiesSet();
        connections.start();
        return connections;
    }

    private static Set<String> servers(String addresses) {
        return Set.of(addresses.split(";", -1));
    }

    private static <F extends RedisConnectionFactory & InitializingBean & SmartLifecycle & DisposableBean>
            void keepRecords(F connections) throws Exception {
        started(connections);
        try (IdempotenceStorage storage =
                RedisIdempotenceStorage.over(SpringDataCommands.of(connections, Duration.ofSeconds(20)))) {
            keepRecords(storage, connections.getClass().getSimpleName());
        } finally {
            connections.destroy();
        }
    }

    private static void keepRecords(IdempotenceStorage storage, String namespace) {
        List<StorageKey> keys = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            StorageKey key = Claims.newKey(namespace);
            keys.add(key);
            Claim claim = Claims.claim(storage, key);
            assertThat(storage.claim(Claims.request(key))).isInstanceOf(ClaimResult.InProgress.class);
            storage.complete(claim, new byte[] {7}, Claims.RETENTION);
            assertThat(storage.claim(Claims.request(key)))
                    .isInstanceOfSatisfying(
                            ClaimResult.Completed.class,
                            completed -> assertThat(completed.result()).containsExactly(7));
        }
        assertThat(storage.list(namespace).map(IdempotenceRecord::key).collect(Collectors.toSet()))
                .containsExactlyInAnyOrderElementsOf(keys);
        IdempotenceRecord seen = storage.find(keys.get(0)).orElseThrow();
        assertThat(storage.deleteUnchanged(keys.get(0), null)).isFalse();
        assertThat(storage.deleteUnchanged(keys.get(0), seen)).isTrue();
        assertThat(storage.find(keys.get(0))).isEmpty();
        assertThat(storage.delete(keys.get(1))).isTrue();
    }
}
