package io.idempotence.server.redis;

import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;
import redis.clients.jedis.Connection;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.exceptions.JedisAskDataException;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisException;
import redis.clients.jedis.exceptions.JedisMovedDataException;
import redis.clients.jedis.exceptions.JedisRedirectionException;
import redis.clients.jedis.providers.ClusterConnectionProvider;
import redis.clients.jedis.util.JedisClusterCRC16;

/** The servers of a Redis Cluster. */
final class ClusterTopology extends RedisTopology {
    private static final int ATTEMPTS = 3;
    private static final long PATIENCE_NANOS = Duration.ofSeconds(2).toNanos();

    private final ClusterConnectionProvider provider;

    ClusterTopology(ClusterConnectionProvider provider, Duration patience) {
        super(patience);
        this.provider = provider;
    }

    @Override
    Connection connectionFor(byte[] key, @Nullable JedisRedirectionException redirection) {
        if (redirection == null) {
            return current(() -> provider.getConnectionFromSlot(JedisClusterCRC16.getSlot(key)));
        }
        Connection connection = current(() -> provider.getConnection(redirection.getTargetNode()));
        if (redirection instanceof JedisAskDataException) {
            try {
                connection.executeCommand(Protocol.Command.ASKING);
            } catch (RuntimeException e) {
                connection.close();
                throw e;
            }
        }
        return connection;
    }

    @Override
    boolean anotherWay(JedisException failure, int attempts, long nanos) {
        if (attempts == ATTEMPTS || nanos > PATIENCE_NANOS) {
            return false;
        }
        // A connection that broke may have been idle for long. If a second one breaks too, the slot may have a new
        // primary.
        boolean broken = failure instanceof JedisConnectionException;
        if (failure instanceof JedisMovedDataException || (broken && attempts > 1)) {
            provider.renewSlotCache();
        }
        return broken || failure instanceof JedisRedirectionException;
    }

    @Override
    List<RedisServer> servers() {
        return provider.getNodes().values().stream().map(RedisServer::behind).toList();
    }

    /** The primaries. Without the right to {@code INFO}, replicas count as primaries, and their keys are listed twice. */
    @Override
    List<RedisServer> primaries() {
        return servers().stream()
                .filter(server -> !ServerInfo.of(server).isClusterReplica())
                .toList();
    }

    @Override
    public void close() {
        provider.close();
    }
}
