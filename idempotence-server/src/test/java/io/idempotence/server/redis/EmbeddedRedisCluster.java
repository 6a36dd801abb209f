package io.idempotence.server.redis;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.awaitility.Awaitility;
import redis.clients.jedis.Jedis;

/** A real Redis Cluster (6.2) of three primaries on the loopback address. Closing it stops all of them. */
public final class EmbeddedRedisCluster implements AutoCloseable {
    private static final int SLOTS = 16_384;

    private final List<EmbeddedRedis> nodes;

    private EmbeddedRedisCluster(List<EmbeddedRedis> nodes) {
        this.nodes = nodes;
    }

    /** Starts three primaries that share the slots evenly, and waits until each says that the cluster is up. */
    public static EmbeddedRedisCluster start() {
        EmbeddedRedisCluster cluster = new EmbeddedRedisCluster(new ArrayList<>());
        try {
            cluster.form();
            return cluster;
        } catch (RuntimeException | AssertionError e) {
            cluster.close();
            throw e;
        }
    }

    private void form() {
        int size = 3;
        for (int i = 0; i < size; i++) {
            EmbeddedRedis node = EmbeddedRedis.start("--cluster-enabled", "yes", "--cluster-node-timeout", "2000");
            nodes.add(node);
            try (Jedis jedis = node.jedis()) {
                jedis.clusterAddSlots(IntStream.range(SLOTS * i / size, SLOTS * (i + 1) / size)
                        .toArray());
                if (i > 0) {
                    jedis.clusterMeet(nodes.get(0).host(), nodes.get(0).port());
                }
            }
        }
        Awaitility.await()
                .atMost(Duration.ofSeconds(30))
                .until(() -> nodes.stream().allMatch(this::isUp));
    }

    private boolean isUp(EmbeddedRedis node) {
        try (Jedis jedis = node.jedis()) {
            String info = jedis.clusterInfo();
            return info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:" + nodes.size());
        }
    }

    /** {@code host:port;host:port;host:port}, as {@link RedisIdempotenceStorage#connect(String)} takes it. */
    public String addresses() {
        return String.join(";", nodes.stream().map(EmbeddedRedis::address).toList());
    }

    /** The three servers. */
    public List<EmbeddedRedis> nodes() {
        return List.copyOf(nodes);
    }

    @Override
    public void close() {
        nodes.forEach(EmbeddedRedis::close);
    }
}
