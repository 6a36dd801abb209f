package io.idempotence.server.redis.internal.jedis;

import io.idempotence.server.redis.internal.RedisErrors;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.exceptions.JedisAskDataException;
import redis.clients.jedis.exceptions.JedisClusterOperationException;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisException;
import redis.clients.jedis.exceptions.JedisMovedDataException;
import redis.clients.jedis.exceptions.JedisRedirectionException;
import redis.clients.jedis.providers.ClusterConnectionProvider;
import redis.clients.jedis.util.JedisClusterCRC16;

/** A Redis Cluster: each key is on the server that has its slot. */
final class ClusterRedis extends PooledRedis {
    private static final int ATTEMPTS = 3;
    private static final long PATIENCE_NANOS = Duration.ofSeconds(2).toNanos();

    private static final RedisCall ASKING = RedisCall.of(Protocol.Command.ASKING);

    private final ClusterConnectionProvider provider;
    private final Map<HostAndPort, SharedServer> nodes = new ConcurrentHashMap<>();
    private final Runnable renewSlots;

    ClusterRedis(
            String name,
            ClusterConnectionProvider provider,
            ConnectionLimits limits,
            @Nullable ReplicaWait replicaWait) {
        super(name, limits, replicaWait);
        this.provider = provider;
        this.renewSlots = new AtMostOncePerSecond(provider::renewSlotCache, System::nanoTime);
    }

    @Override
    List<Object> ask(byte[] key, RedisCall call, boolean replicated, @Nullable JedisRedirectionException redirection) {
        HostAndPort address = redirection == null ? nodeOf(key) : redirection.getTargetNode();
        RedisServer node = nodes.computeIfAbsent(address, at -> new SharedServer(() -> provider.getConnection(at)))
                .server(replicated);
        if (!(redirection instanceof JedisAskDataException)) {
            return node.ask(List.of(call));
        }
        // The node that is taking over a slot only accepts what directly follows ASKING.
        List<Object> replies = node.ask(List.of(ASKING, call));
        boolean refused = RedisServer.isError(replies.get(0)) && RedisServer.isError(replies.get(1));
        return refused ? replies : replies.subList(1, replies.size());
    }

    private HostAndPort nodeOf(byte[] key) {
        int slot = JedisClusterCRC16.getSlot(key);
        HostAndPort node = provider.getNode(slot);
        if (node == null) {
            renewSlots.run();
            node = provider.getNode(slot);
        }
        return node != null ? node : anyNode(slot);
    }

    /** Returns any node: it redirects to the one that has the slot, if there is one. */
    private HostAndPort anyNode(int slot) {
        return provider.getNodes().keySet().stream()
                .findAny()
                .map(HostAndPort::from)
                .orElseThrow(() -> new NothingWrittenException(
                        new JedisClusterOperationException("no node is known, for slot " + slot)));
    }

    @Override
    boolean mayRepeat(JedisException failure, int attempts, long nanos) {
        boolean isTooLate = nanos > PATIENCE_NANOS;
        // A connection that broke may have been idle for long.
        // If a second one breaks too, or if the first one hung, the slot may have a new primary.
        boolean broken = failure instanceof JedisConnectionException;
        // A primary that restarts redirects nobody, although its replica may have its slots by now.
        boolean isRestarting = RedisErrors.isNoPrimary(failure) || RedisErrors.isClusterDown(failure);
        if (failure instanceof JedisMovedDataException || isRestarting || (broken && (attempts > 1 || isTooLate))) {
            renewSlots.run();
        }
        if (attempts == ATTEMPTS || isTooLate) {
            return false;
        }
        return broken || failure instanceof JedisRedirectionException || (isRestarting && attempts == 1);
    }

    @Override
    List<RedisServer> servers() {
        return provider.getNodes().values().stream().map(RedisServer::behind).toList();
    }

    /**
     * The primaries, by what the Cluster says now: a replica that is dead must not count, and a new primary must. Without the right to
     * {@code INFO}, replicas count as primaries, and their keys are listed twice.
     */
    @Override
    List<RedisServer> primaries() {
        provider.renewSlotCache();
        return servers().stream()
                .filter(server -> !server.info().isClusterReplica())
                .toList();
    }

    @Override
    void closeConnections() {
        provider.close();
    }
}
