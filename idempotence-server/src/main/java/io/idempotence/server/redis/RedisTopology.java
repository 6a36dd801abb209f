package io.idempotence.server.redis;

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
 */
abstract class RedisTopology implements AutoCloseable {
    private final Map<Connection, Integer> generations = Collections.synchronizedMap(new WeakHashMap<>());
    private final AtomicInteger generation = new AtomicInteger();

    /** A connection to the server that has a key, or to where it was redirected. The caller closes it. */
    abstract Connection connectionFor(byte[] key, @Nullable JedisRedirectionException redirection);

    /** Whether a failed call may be sent again at once; if so, the next {@link #connectionFor} knows better. */
    abstract boolean anotherWay(JedisException failure, int attempts, long nanos);

    /** Makes sure that no connection is used that was opened before now. */
    void dropConnections() {
        generation.incrementAndGet();
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
        while (true) {
            int now = generation.get();
            Connection connection = pool.get();
            if (generations.computeIfAbsent(connection, opened -> now) == generation.get()) {
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

        Primary(ConnectionProvider provider, Runnable onClose) {
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
