package io.idempotence.server.redis;

import io.idempotence.server.storage.StorageKey;
import java.time.Duration;
import java.util.List;
import org.awaitility.Awaitility;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.exceptions.JedisMovedDataException;
import redis.clients.jedis.params.MigrateParams;
import redis.clients.jedis.util.JedisClusterCRC16;

/** A slot on its way from one primary of a Cluster to another, in the steps that {@code redis-cli --cluster reshard} takes. */
final class SlotMigration {
    private static final int TIMEOUT_MILLIS = 5_000;

    private final List<EmbeddedRedis> nodes;
    private final StorageKey key;
    private final int slot;
    private final EmbeddedRedis source;
    private final EmbeddedRedis target;

    private SlotMigration(List<EmbeddedRedis> nodes, StorageKey key, EmbeddedRedis source, EmbeddedRedis target) {
        this.nodes = nodes;
        this.key = key;
        this.slot = slotOf(key);
        this.source = source;
        this.target = target;
    }

    static int slotOf(StorageKey key) {
        return JedisClusterCRC16.getSlot(key.value());
    }

    /** Of the slot that a key is in: from now on its owner replies {@code ASK} for what it does not have. */
    static SlotMigration begin(EmbeddedRedisCluster cluster, StorageKey key) {
        int slot = slotOf(key);
        EmbeddedRedis source = cluster.nodes().stream()
                .filter(node -> owns(node, key))
                .findFirst()
                .orElseThrow();
        EmbeddedRedis target = cluster.nodes().stream()
                .filter(node -> node != source)
                .findFirst()
                .orElseThrow();
        try (Jedis from = source.jedis();
                Jedis to = target.jedis()) {
            to.clusterSetSlotImporting(slot, from.clusterMyId());
            from.clusterSetSlotMigrating(slot, to.clusterMyId());
        }
        return new SlotMigration(cluster.nodes(), key, source, target);
    }

    /** The former owner. */
    EmbeddedRedis source() {
        return source;
    }

    EmbeddedRedis target() {
        return target;
    }

    static boolean owns(EmbeddedRedis node, StorageKey key) {
        try (Jedis jedis = node.jedis()) {
            jedis.exists(key.value());
            return true;
        } catch (JedisMovedDataException e) {
            return false;
        }
    }

    /** Moves every record of the slot. */
    void moveRecords() {
        try (Jedis from = source.jedis()) {
            List<String> keys = from.clusterGetKeysInSlot(slot, Integer.MAX_VALUE);
            if (!keys.isEmpty()) {
                from.migrate(
                        target.host(), target.port(), TIMEOUT_MILLIS, new MigrateParams(), keys.toArray(String[]::new));
            }
        }
    }

    /** From now on its former owner replies {@code MOVED}, and all primaries agree. */
    void end() {
        try (Jedis to = target.jedis()) {
            String owner = to.clusterMyId();
            to.clusterSetSlotNode(slot, owner);
            for (EmbeddedRedis node : nodes) {
                try (Jedis jedis = node.jedis()) {
                    jedis.clusterSetSlotNode(slot, owner);
                }
            }
        }
        // Gossip that is under way must arrive first: a slot that moved again meanwhile would lose its records.
        Awaitility.await()
                .pollDelay(Duration.ofMillis(100))
                .until(() -> nodes.stream().allMatch(node -> owns(node, key) == (node == target)));
    }
}
