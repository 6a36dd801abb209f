package io.idempotence.it.pair;

import static io.idempotence.it.wire.FaultyProxy.Fault.NONE;
import static io.idempotence.it.wire.FaultyProxy.Fault.RESET_AFTER_FORWARDING;
import static io.idempotence.it.wire.FaultyProxy.Fault.RESPONSE_LOST;
import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.server.Idempotence;
import io.idempotence.server.redis.EmbeddedRedis;
import io.idempotence.server.redis.EmbeddedRedisCluster;
import io.idempotence.server.redis.RedisIdempotenceStorage;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisCluster;
import redis.clients.jedis.RedisClusterClient;
import redis.clients.jedis.UnifiedJedis;

/** Both halves on a Redis Cluster of three primaries. */
class PairClusterIT extends PairTestBase {
    private static final int ORDERS = 60;

    private static EmbeddedRedisCluster cluster;

    @BeforeAll
    static void startCluster() {
        cluster = EmbeddedRedisCluster.start();
    }

    @AfterAll
    static void stopCluster() {
        cluster.close();
    }

    @Test
    void ordersArePaidOnceAndTheirRecordsAreSpreadOverAllPrimaries() throws Exception {
        startProvider(() -> RedisIdempotenceStorage.connect(cluster.addresses()));
        for (EmbeddedRedis node : cluster.nodes()) {
            try (Jedis jedis = node.jedis()) {
                jedis.flushAll();
            }
        }
        assertEachOrderIsPaidOnce();
        long records = 0;
        for (EmbeddedRedis node : cluster.nodes()) {
            try (Jedis jedis = node.jedis()) {
                assertThat(jedis.dbSize()).as(node.address()).isPositive();
                records += jedis.dbSize();
            }
        }
        assertThat(records).as("one key for each ID").isEqualTo(ORDERS);
    }

    @Test
    @SuppressWarnings("deprecation") // applications have it
    void jedisClusterOfTheApplicationIsStillOpenAfterOursIsClosed() throws Exception {
        try (JedisCluster client = new JedisCluster(seeds())) {
            assertWorksWithAndLeavesOpen(client);
        }
    }

    @Test
    void redisClusterClientOfTheApplicationIsStillOpenAfterOursIsClosed() throws Exception {
        try (RedisClusterClient client = RedisClusterClient.create(seeds())) {
            assertWorksWithAndLeavesOpen(client);
        }
    }

    private void assertWorksWithAndLeavesOpen(UnifiedJedis client) throws Exception {
        startProvider(() -> RedisIdempotenceStorage.using(client));
        assertEachOrderIsPaidOnce();
        idempotences.forEach(Idempotence::close);
        client.set("of-the-application", "still here");
        assertThat(client.get("of-the-application")).isEqualTo("still here");
        client.del("of-the-application");
    }

    private void assertEachOrderIsPaidOnce() throws Exception {
        Payments payments = through(
                (request, n) -> n > 1 ? NONE : request.text().endsWith("7") ? RESET_AFTER_FORWARDING : RESPONSE_LOST,
                fast(),
                okHttp(),
                20_000,
                instances());
        Map<String, String> responses = concurrently(ORDERS, i -> payments.pay("order-" + i));
        responses.forEach((number, response) -> assertThat(response).endsWith(" for order-" + number));
        assertThat(ledger.payments())
                .isEqualTo(Ledger.onceEach(
                        IntStream.range(0, ORDERS).mapToObj(i -> "order-" + i).collect(Collectors.toSet())));
    }

    private static Set<HostAndPort> seeds() {
        return cluster.nodes().stream()
                .map(node -> new HostAndPort(node.host(), node.port()))
                .collect(Collectors.toSet());
    }
}
