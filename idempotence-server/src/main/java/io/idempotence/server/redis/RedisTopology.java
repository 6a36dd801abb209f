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
 * Pools of connections that were opened here, and which of them a key needs. Thread-safe.
 *
 * <p>The pools of a Sentinel client cannot be reached in every version of the driver. So connections are not dropped from a pool:
 * each belongs to the generation in which it was first used, and one of an earlier generation is closed when the pool gives it out.
 * A new generation begins at most once a second: a server in trouble is not flooded with new connections.
 */
abstract class RedisTopology implements AutoCloseable {
    private final Map<Connection, Integer> generations = Collections.synchronizedMap(new WeakHashMap<>());
    private final AtomicInteger generation = new AtomicInteger();
    private final Runnable newGeneration = new AtMostOncePerSecond(generation::incrementAndGet, System::nanoTime);
    private final Duration patience;

    /** @param patience how long connections of an earlier generation are passed over for one call */
    RedisTopology(Duration patience) {
        this.patience = patience;
    }

    /** A connection to the server that has a key, or to where it was redirected. The caller closes it. */
    abstract Connection connectionFor(byte[] key, @Nullable JedisRedirectionException redirection);

    /** Whether a failed call may be sent again at once; if so, the next {@link #connectionFor} may lead elsewhere. */
    abstract boolean anotherWay(JedisException failure, int attempts, long nanos);

    /** Closes every connection that was used before now instead of using it again, unless that was asked for a moment ago. */
    final void dropConnections() {
        newGeneration.run();
    }

    /** Every server, as far as known. */
    abstract List<RedisServer> servers();

    /** Every server that is not a replica of another one in the list. */
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

    /** One server, or the one that Sentinels call the primary. */
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

        /** A primary that was demoted has written nothing, and at its address there may be another server by now. */
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
