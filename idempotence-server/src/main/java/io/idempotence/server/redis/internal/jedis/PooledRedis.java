package io.idempotence.server.redis.internal.jedis;

import io.idempotence.server.redis.internal.LuaScript;
import io.idempotence.server.redis.internal.Redis;
import io.idempotence.server.redis.internal.RedisErrors;
import io.idempotence.server.storage.StorageUnavailableException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.WeakHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import redis.clients.jedis.Connection;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.exceptions.JedisException;
import redis.clients.jedis.exceptions.JedisNoScriptException;
import redis.clients.jedis.exceptions.JedisRedirectionException;
import redis.clients.jedis.providers.ConnectionProvider;

/**
 * Redis through connections that were opened here: to a single server, to a primary behind Sentinels, or to a Cluster. Subclasses choose
 * the server for a key.
 *
 * <p>The pools of a Sentinel client are not accessible in every version of the driver, so connections are not removed from a pool. Instead
 * each connection belongs to the generation in which it was first used, and one of an earlier generation is closed when the pool lends it.
 * A new generation begins at most once a second, so that a server in trouble is not flooded with new connections.
 */
abstract class PooledRedis implements Redis {
    /** How many runs share a round trip. Not more, because a connection that hangs delays all of them. */
    private static final int RUNS_PER_ROUND_TRIP = 16;

    private final String name;
    private final ConnectionLimits limits;
    private final @Nullable ReplicaWait replicaWait;
    private final LargeRoundTrips large = new LargeRoundTrips();
    private volatile boolean closed;

    /**
     * The limits of the connections to one server.
     *
     * @param connections how many may be in use at once; unlimited if negative
     * @param maxWait how long a call may wait for one, and skip connections of an earlier generation; at most a day, and negative means a day
     * @param maxReply how long the server may take to reply
     */
    record ConnectionLimits(int connections, Duration maxWait, Duration maxReply) {
        private static final Duration LONGEST = Duration.ofDays(1);

        ConnectionLimits {
            if (maxWait.isNegative() || maxWait.compareTo(LONGEST) > 0) {
                maxWait = LONGEST;
            }
        }
    }

    PooledRedis(String name, ConnectionLimits limits, @Nullable ReplicaWait replicaWait) {
        this.name = name;
        this.limits = limits;
        this.replicaWait = replicaWait;
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public Object run(LuaScript script, byte[] key, byte[]... args) {
        return send(key, RedisCall.evalsha(script, key, args), false).get(0);
    }

    @Override
    public Object runReplicated(LuaScript script, byte[] key, byte[]... args) {
        List<Object> replies = send(key, RedisCall.evalsha(script, key, args), true);
        if (replicaWait != null) {
            replicaWait.check(replies.get(1), replies.get(0));
        }
        return replies.get(0);
    }

    @Override
    public int runsPerRoundTrip() {
        return onlyServer(true) == null ? 1 : RUNS_PER_ROUND_TRIP;
    }

    @Override
    public List<Object> runAllReplicated(LuaScript script, List<ScriptRun> runs) {
        RedisServer server = Objects.requireNonNull(onlyServer(true), "only one server has every key");
        List<RedisCall> calls = new ArrayList<>(runs.size());
        runs.forEach(run -> calls.add(RedisCall.evalsha(script, run.key(), run.arguments())));
        List<Object> replies = askAll(server, script, calls);
        if (replicaWait != null) {
            replicaWait.check(replies.get(runs.size()), replies.get(0));
        }
        List<Object> outcomes = new ArrayList<>(runs.size());
        for (int i = 0; i < runs.size(); i++) {
            Object reply = replies.get(i);
            // A run alone can also load the script, or find another primary.
            outcomes.add(RedisServer.isError(reply) ? replyOrFailure(script, runs.get(i)) : reply);
        }
        return outcomes;
    }

    /** Sends calls, and repeats them for the same reason as {@link #send}. */
    private static List<Object> askAll(RedisServer server, LuaScript script, List<RedisCall> calls) {
        try {
            return server.ask(calls);
        } catch (FlatCombiner.FollowerFailedException e) {
            if (isOnlyOfItsConnection(e) && script.isRepeatable()) {
                try {
                    return server.ask(calls);
                } catch (NothingWrittenException again) {
                    // The first time they may have been executed.
                    e.addSuppressed(again);
                }
            }
            throw e;
        }
    }

    private Object replyOrFailure(LuaScript script, ScriptRun run) {
        try {
            return runReplicated(script, run.key(), run.arguments());
        } catch (RuntimeException e) {
            return e;
        }
    }

    @Override
    public Iterator<List<ScannedKey>> scan(String pattern, int pageSize, LuaScript read) {
        return new RecordScan(this, primaries(), pattern, pageSize, read);
    }

    @Override
    public String reason(RuntimeException e) {
        return JedisErrors.reason(e);
    }

    @Override
    public final void close() {
        closed = true;
        // The pool would swallow it.
        boolean interrupted = Thread.interrupted();
        try {
            closeConnections();
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    abstract void closeConnections();

    /** Fails unless the user has all rights that records need, and additional ones. */
    void checkRights(byte[] key, List<RedisCall> more) {
        List<RedisCall> all = new ArrayList<>(more);
        if (replicaWait != null) {
            // Waits for no replica.
            all.add(RedisCall.of(Protocol.Command.WAIT, "0", "1"));
        }
        UserRights.check(name, key, call -> send(key, call, false).get(0), all);
    }

    /**
     * Sends a call to the server that has a key. In a Cluster a call follows its slot to another server, and is repeated after a broken
     * connection: a script may run twice for the same owner. Elsewhere a call is repeated once, after a failure that it shared with
     * others: one broken connection must not look like an outage. An unrepeatable call that may have been executed is never repeated.
     */
    private List<Object> send(byte[] key, RedisCall call, boolean replicated) {
        long begin = System.nanoTime();
        RedisCall next = call;
        JedisRedirectionException redirection = null;
        boolean inDoubt = false;
        int attempts = 0;
        while (true) {
            RuntimeException failure;
            try {
                List<Object> replies = ask(key, next, replicated, redirection);
                RedisServer.orThrow(replies.get(0));
                return replies;
            } catch (NothingWrittenException e) {
                failure = e.reason();
            } catch (JedisDataException e) {
                failure = e;
            } catch (JedisException e) {
                inDoubt = true;
                failure = e;
            }
            if (failure instanceof JedisNoScriptException && next == call) {
                next = call.withSource();
                continue;
            }
            attempts++;
            boolean repeats = (attempts == 1 && isOnlyOfItsConnection(failure))
                    || (failure instanceof JedisException e && mayRepeat(e, attempts, System.nanoTime() - begin));
            if (!repeats || (inDoubt && !call.isRepeatable())) {
                throw inDoubt ? failure : new NothingWrittenException(failure);
            }
            redirection = failure instanceof JedisRedirectionException other ? other : null;
        }
    }

    private static boolean isOnlyOfItsConnection(RuntimeException failure) {
        return failure instanceof FlatCombiner.FollowerFailedException && !JedisErrors.isTimeout(failure);
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
     * @param replicated whether to wait for replicas, if that is configured
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
            RoundTripSender sender = new RoundTripSender(limits.maxReply(), wait, large, this::dropConnections);
            return new FlatCombiner(this::connection, sender, limits.connections(), limits.maxWait());
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
    static final class Primary extends PooledRedis {
        private final Runnable onClose;
        private final SharedServer server;

        Primary(
                String name,
                ConnectionProvider provider,
                ConnectionLimits limits,
                @Nullable ReplicaWait replicaWait,
                Runnable onClose) {
            super(name, limits, replicaWait);
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
                    return RoundTripSender.ask(connection, calls);
                }
            });
        }

        @Override
        void closeConnections() {
            onClose.run();
        }
    }
}
