package io.idempotence.server.redis;

import io.idempotence.server.redis.Redis.NothingWrittenException;
import io.idempotence.server.storage.StorageUnavailableException;
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
    private final Limits limits;
    private final @Nullable ReplicaWait replicaWait;
    private volatile boolean closed;

    /**
     * The limits of the connections to one server.
     *
     * @param connections how many may be in use at once; unlimited if negative
     * @param maxWait how long a call may wait for one, and skip connections of an earlier generation; at most a day, and negative means a day
     * @param maxReply how long the server may take to reply
     */
    record Limits(int connections, Duration maxWait, Duration maxReply) {
        private static final Duration LONGEST = Duration.ofDays(1);

        Limits {
            if (maxWait.isNegative() || maxWait.compareTo(LONGEST) > 0) {
                maxWait = LONGEST;
            }
        }
    }

    RedisTopology(Limits limits, @Nullable ReplicaWait replicaWait) {
        this.limits = limits;
        this.replicaWait = replicaWait;
    }

    /**
     * Sends a call to the server that has a key, or to the target of a redirection.
     *
     * @param replicated whether to wait for replicas, if that is configured
     * @return the reply, which may be an error; then the reply to {@link ReplicaWait#call}, if there was one
     * @throws NothingWrittenException if the call was not sent
     * @throws RuntimeException if the call may have been executed
     */
    abstract List<Object> ask(
            byte[] key, RedisCall call, boolean replicated, @Nullable JedisRedirectionException redirection);

    /**
     * The server that has every key, or null if there are several.
     *
     * @param replicated as in {@link #ask}
     */
    @Nullable
    RedisServer onlyServer(boolean replicated) {
        return null;
    }

    /** Whether a failed call may be repeated at once. If so, the next {@link #ask} may lead elsewhere. */
    abstract boolean mayRepeat(JedisException failure, int attempts, long nanos);

    /** All known servers. */
    abstract List<RedisServer> servers();

    /** All known servers that are not replicas of another one in the list. */
    List<RedisServer> primaries() {
        return servers();
    }

    @Override
    public void close() {
        closed = true;
    }

    /** One server, whose callers share round trips. Those who wait for replicas do not delay the others. */
    final class SharedServer {
        private final Supplier<Connection> pool;
        private final Map<Connection, Integer> generations = Collections.synchronizedMap(new WeakHashMap<>());
        private final AtomicInteger generation = new AtomicInteger();
        private final Runnable newGeneration = new AtMostOncePerSecond(generation::incrementAndGet, System::nanoTime);
        private final RedisServer plain;
        private final RedisServer replicated;

        SharedServer(Supplier<Connection> pool) {
            this.pool = pool;
            this.plain = combiner(null);
            this.replicated = replicaWait == null ? plain : combiner(replicaWait);
        }

        private RedisServer combiner(@Nullable ReplicaWait wait) {
            CallPipeline pipeline = new CallPipeline(limits.maxReply(), wait, this::dropConnections);
            return new FlatCombiner(this::connection, pipeline, limits.connections(), limits.maxWait());
        }

        /** Closes every connection that was used before now when it is borrowed next, unless this was called a moment ago. */
        void dropConnections() {
            newGeneration.run();
        }

        /** Borrows a connection of the current generation, if the pool has one in time. */
        Connection connection() {
            long begin = System.nanoTime();
            while (true) {
                if (closed) {
                    throw new StorageUnavailableException("the storage is closed", null);
                }
                Connection connection = pool.get();
                int firstUsed = generations.computeIfAbsent(connection, opened -> generation.get());
                if (firstUsed == generation.get()
                        || System.nanoTime() - begin > limits.maxWait().toNanos()) {
                    return connection;
                }
                connection.setBroken();
                connection.close();
            }
        }

        RedisServer server(boolean waitsForReplicas) {
            return waitsForReplicas ? replicated : plain;
        }
    }

    /** A single server, or the primary that Sentinels report. */
    static final class Primary extends RedisTopology {
        private final Runnable onClose;
        private final SharedServer server;

        Primary(ConnectionProvider provider, Limits limits, @Nullable ReplicaWait replicaWait, Runnable onClose) {
            super(limits, replicaWait);
            this.onClose = onClose;
            this.server = new SharedServer(provider::getConnection);
        }

        @Override
        List<Object> ask(
                byte[] key, RedisCall call, boolean replicated, @Nullable JedisRedirectionException redirection) {
            return onlyServer(replicated).ask(List.of(call));
        }

        @Override
        RedisServer onlyServer(boolean replicated) {
            return server.server(replicated);
        }

        /** A demoted primary has written nothing, and another server may be at its address by now. */
        @Override
        boolean mayRepeat(JedisException failure, int attempts, long nanos) {
            return attempts == 1 && RedisErrors.isNoPrimary(failure);
        }

        @Override
        List<RedisServer> servers() {
            return List.of(calls -> {
                try (Connection connection = server.connection()) {
                    return RedisServer.ask(connection, calls);
                }
            });
        }

        @Override
        public void close() {
            super.close();
            onClose.run();
        }
    }
}
