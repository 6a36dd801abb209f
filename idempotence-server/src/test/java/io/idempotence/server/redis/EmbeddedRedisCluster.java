package io.idempotence.server.redis;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.awaitility.Awaitility;
import redis.clients.jedis.Jedis;

/** A real Redis Cluster on the loopback address. Closing it stops all its servers. */
public final class EmbeddedRedisCluster implements AutoCloseable {
    private static final int SLOTS = 16_384;

    /** A busy machine pauses a node for less, so that the others do not take it for dead. */
    private static final Duration PATIENT = Duration.ofMinutes(1);

    private final List<EmbeddedRedis> nodes = new ArrayList<>();
    private final List<EmbeddedRedis> replicas = new ArrayList<>();
    private final Duration nodeTimeout;

    private EmbeddedRedisCluster(Duration nodeTimeout) {
        this.nodeTimeout = nodeTimeout;
    }

    /** Starts three primaries that share the slots evenly, and waits until each says that the cluster is up. */
    public static EmbeddedRedisCluster start() {
        return start(3, 0, PATIENT);
    }

    /** The same, and a replica follows the first one. The other two are the majority that soon makes it a primary if the first one fails. */
    static EmbeddedRedisCluster startWithReplica() {
        return start(3, 1, Duration.ofSeconds(2));
    }

    /** The same with two primaries, each of which has a replica that follows it. */
    static EmbeddedRedisCluster startReplicated() {
        return start(2, 2, PATIENT);
    }

    private static EmbeddedRedisCluster start(int primaries, int replicas, Duration nodeTimeout) {
        EmbeddedRedisCluster cluster = new EmbeddedRedisCluster(nodeTimeout);
        try {
            cluster.form(primaries);
            cluster.replicate(replicas);
            return cluster;
        } catch (RuntimeException | AssertionError e) {
            cluster.close();
            throw e;
        }
    }

    private void form(int size) {
        for (int i = 0; i < size; i++) {
            EmbeddedRedis node = startNode();
            nodes.add(node);
            try (Jedis jedis = node.jedis()) {
                jedis.clusterAddSlots(IntStream.range(SLOTS * i / size, SLOTS * (i + 1) / size)
                        .toArray());
                if (i > 0) {
                    jedis.clusterMeet(nodes.get(0).host(), nodes.get(0).port());
                }
            }
        }
        awaitAll(this::isUp);
    }

    private void replicate(int first) {
        for (EmbeddedRedis node : nodes.subList(0, first)) {
            EmbeddedRedis replica = startNode();
            replicas.add(replica);
            try (Jedis jedis = replica.jedis()) {
                jedis.clusterMeet(node.host(), node.port());
            }
        }
        awaitAll(this::isUp);
        for (int i = 0; i < first; i++) {
            try (Jedis primary = nodes.get(i).jedis();
                    Jedis replica = replicas.get(i).jedis()) {
                replica.clusterReplicate(primary.clusterMyId());
            }
        }
        awaitAll(node -> nodes.indexOf(node) >= first || replicas.contains(node) || node.hasReplica());
    }

    private EmbeddedRedis startNode() {
        return EmbeddedRedis.start(
                "--cluster-enabled", "yes", "--cluster-node-timeout", Long.toString(nodeTimeout.toMillis()));
    }

    private void awaitAll(Predicate<EmbeddedRedis> condition) {
        Awaitility.await()
                .atMost(Duration.ofMinutes(1))
                .until(() -> servers().stream().allMatch(condition));
    }

    private boolean isUp(EmbeddedRedis node) {
        try (Jedis jedis = node.jedis()) {
            String info = jedis.clusterInfo();
            return info.contains("cluster_state:ok")
                    && info.contains("cluster_known_nodes:" + (nodes.size() + replicas.size()));
        }
    }

    /** The primaries as {@code host:port;host:port}, as {@link RedisIdempotenceStorage#connect(String)} takes it. */
    public String addresses() {
        return String.join(";", nodes.stream().map(EmbeddedRedis::address).toList());
    }

    /** The primaries. */
    public List<EmbeddedRedis> nodes() {
        return List.copyOf(nodes);
    }

    /** The replicas, in the order of their primaries. */
    List<EmbeddedRedis> replicas() {
        return List.copyOf(replicas);
    }

    /** The primaries and their replicas. */
    List<EmbeddedRedis> servers() {
        return Stream.concat(nodes.stream(), replicas.stream()).toList();
    }

    @Override
    public void close() {
        replicas.forEach(EmbeddedRedis::close);
        nodes.forEach(EmbeddedRedis::close);
    }
}
