package io.idempotence.server.redis;

import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import redis.clients.jedis.Connection;
import redis.clients.jedis.exceptions.JedisException;
import redis.clients.jedis.exceptions.JedisRedirectionException;
import redis.clients.jedis.providers.ConnectionProvider;

/**
 * The pools of connections that were opened here, and the choice of the pool for a key. Thread-safe.
 *
 * <p>The pools of a Sentinel client are not accessible in every version of the driver, so connections are not removed from a pool. Instead
 * each connection belongs to the generation in which it was first used, and one of an earlier generation is closed when the pool lends it.
 * A new generation begins at most once a second, so that a server in trouble is not flooded with new connections.
 */
abstract class RedisTopology implements AutoCloseable {
    private final Map<Connection, Integer> generations = Collections.synchronizedMap(new WeakHashMap<>());
    private final AtomicInteger generation = new AtomicInteger();
    private final Runnable newGeneration = new AtMostOncePerSecond(generation::incrementAndGet, System::nanoTime);
    private final Duration patience;

    /** @param patience how long connections of an earlier generation are skipped for one call */
    RedisTopology(Duration patience) {
        this.patience = patience;
    }

    /** A connection to the server that has a key, or to the target of a redirection. The caller closes it. */
    abstract Connection connectionFor(byte[] key, @Nullable JedisRedirectionException redirection);

    /** Whether a failed call may be repeated at once. If so, the next {@link #connectionFor} may lead elsewhere. */
    abstract boolean anotherWay(JedisException failure, int attempts, long nanos);

    /** Closes every connection that was used before now when it is borrowed next, unless this was called a moment ago. */
    final void dropConnections() {
        newGeneration.run();
    }

    /** All known servers. */
    abstract List<RedisServer> servers();

    /** All known servers that are not replicas of another one in the list. */
    List<RedisServer> primaries() {
        return servers();
    }

    @Override
    public abstract void close();

    final Connection current(Supplier<Connection> pool) {
        long begin = System.nanoTime();
        while (true) {
            Connection connection = pool.get();
            int firstUsed = generations.computeIfAbsent(connection, opened -> generation.get());
            if (firstUsed == generation.get() || System.nanoTime() - begin > patience.toNanos()) {
                return connection;
            }
            connection.setBroken();
            connection.close();
        }
    }

    /** A single server, or the primary that Sentinels report. */
    static final class Primary extends RedisTopology {
        private final ConnectionProvider provider;
        private final Runnable onClose;

        Primary(ConnectionProvider provider, Duration patience, Runnable onClose) {
            super(patience);
            this.provider = provider;
            this.onClose = onClose;
        }

        @Override
        Connection connectionFor(byte[] key, @Nullable JedisRedirectionException redirection) {
            return connection();
        }

        /** A demoted primary has written nothing, and another server may be at its address by now. */
        @Override
        boolean anotherWay(JedisException failure, int attempts, long nanos) {
            return attempts == 1 && RedisErrors.isNoPrimary(failure);
        }

        private Connection connection() {
            return current(provider::getConnection);
        }

        @Override
        List<RedisServer> servers() {
            return List.of(calls -> {
                try (Connection connection = connection()) {
                    return RedisServer.ask(connection, calls);
                }
            });
        }

        @Override
        public void close() {
            onClose.run();
        }
    }
}
