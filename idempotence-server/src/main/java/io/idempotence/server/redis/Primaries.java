package io.idempotence.server.redis;

import java.util.HashMap;
import java.util.Map;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.Connection;
import redis.clients.jedis.ConnectionPool;
import redis.clients.jedis.RedisClusterClient;
import redis.clients.jedis.ScanIteration;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.providers.ConnectionProvider;

/** What a walk over a Cluster has to visit. The driver's own walk also visits replicas, where every key is met again. */
final class Primaries implements ConnectionProvider {
    private final Map<String, ConnectionPool> nodes;

    private Primaries(Map<String, ConnectionPool> nodes) {
        this.nodes = nodes;
    }

    static ScanIteration scan(UnifiedJedis client, int page, String pattern) {
        Map<String, ConnectionPool> nodes = clusterNodes(client);
        if (nodes.isEmpty()) {
            return client.scanIteration(page, pattern);
        }
        Map<String, ConnectionPool> primaries = new HashMap<>(nodes);
        primaries.values().removeIf(RedisConnector::isClusterReplica);
        return new ScanIteration(new Primaries(primaries), page, pattern);
    }

    @SuppressWarnings("deprecation") // applications have it
    private static Map<String, ConnectionPool> clusterNodes(UnifiedJedis client) {
        if (client instanceof RedisClusterClient cluster) {
            return cluster.getClusterNodes();
        }
        return client instanceof redis.clients.jedis.JedisCluster cluster ? cluster.getClusterNodes() : Map.of();
    }

    @Override
    public Map<String, ConnectionPool> getConnectionMap() {
        return nodes;
    }

    @Override
    public Connection getConnection() {
        return nodes.values().iterator().next().getResource();
    }

    @Override
    public Connection getConnection(CommandArguments args) {
        return getConnection();
    }

    /** Nothing here is its own. */
    @Override
    public void close() {}
}
