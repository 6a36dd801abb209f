package io.idempotence.server.redis.internal.jedis;

import io.idempotence.server.redis.internal.RedisErrors;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import redis.clients.jedis.Connection;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisDataException;

/**
 * The sender of the calls of several callers, in one round trip to one server. Thread-safe.
 *
 * <p>Each call has its own reply, which may be an error. If a reply is missing, late or of a type that its call cannot have, or if there is
 * one too many, no reply counts, and the connection is closed.
 *
 * <p>An {@code ECHO} whose text is used only once ends every round trip. Its reply proves that the server sent as many replies as there are
 * calls, even if it had sent one too many before. As Redis replies in the order of the calls, each has its own.
 */
final class RoundTripSender {
    /** How much fits into the buffers of a socket, so that the last call can be written before any reply is read. */
    static final int SOCKET_BYTES = 32 * 1024;

    private final Runnable dropConnections;
    private final @Nullable ReplicaWait replicaWait;
    private final long replicaMillis;
    private final long maxNanos;
    private final LargeRoundTrips large;
    private final LongSupplier nanoTime;
    private volatile long lastReplies;

    /**
     * @param replyTimeout how long the server may stay silent; all replies of a round trip together may take twice as long
     * @param replicaWait what to wait for after the last call, or null. The reply is the last one of every caller
     * @param large those of all servers. So a call to one ends what another has not read in time
     * @param dropConnections called if the other open connections may be useless
     */
    RoundTripSender(
            Duration replyTimeout, @Nullable ReplicaWait replicaWait, LargeRoundTrips large, Runnable dropConnections) {
        this(replyTimeout, replicaWait, large, dropConnections, System::nanoTime);
    }

    /** @param nanoTime a clock like {@link System#nanoTime} */
    RoundTripSender(
            Duration replyTimeout,
            @Nullable ReplicaWait replicaWait,
            LargeRoundTrips large,
            Runnable dropConnections,
            LongSupplier nanoTime) {
        this.nanoTime = nanoTime;
        this.lastReplies = nanoTime.getAsLong();
        this.large = large;
        this.dropConnections = dropConnections;
        this.replicaWait = replicaWait;
        this.replicaMillis = replicaWait == null ? 0 : replicaWait.timeout().toMillis();
        this.maxNanos = replyTimeout.plusMillis(replicaMillis).toNanos() * 2;
    }

    /**
     * Sends the calls of each caller, and returns the replies to each caller.
     *
     * @throws RuntimeException if any call may have been executed
     */
    List<List<Object>> exchange(Connection connection, List<List<RedisCall>> callers) {
        long sentAt = nanoTime.getAsLong();
        boolean isUsable = false;
        try {
            List<List<Object>> replies = isLarge(callers)
                    ? large.run(connection, longest(), () -> roundTripOnOneSocket(connection, callers, sentAt))
                    : roundTripOnOneSocket(connection, callers, sentAt);
            lastReplies = nanoTime.getAsLong();
            isUsable = ofPrimary(replies);
            if (!isUsable) {
                // A new connection may lead to another server.
                dropConnections.run();
            }
            return replies;
        } catch (RuntimeException e) {
            if (areOthersStale(e, sentAt)) {
                dropConnections.run();
            }
            // Callers take an error of Redis for the reply to their call.
            throw e instanceof JedisDataException ? new JedisConnectionException("the driver failed", e) : e;
        } finally {
            if (!isUsable) {
                connection.setBroken();
            }
        }
    }

    /** A batch of several callers never is: see {@link FlatCombiner#takeOthers}. */
    private static boolean isLarge(List<List<RedisCall>> callers) {
        return callers.size() == 1 && RedisCall.bytes(callers.get(0)) > SOCKET_BYTES;
    }

    /** Closes the connections on which a large write takes too long. Every caller begins with this. */
    void closeOverdue() {
        large.closeOverdue();
    }

    /** The longest time that a round trip may take: the limit for all replies, and the longest wait for one reply that begins just before it. */
    Duration longest() {
        return Duration.ofNanos(maxNanos / 2 * 3);
    }

    private static boolean ofPrimary(List<List<Object>> replies) {
        for (List<Object> own : replies) {
            for (Object reply : own) {
                if (reply instanceof JedisDataException error && RedisErrors.isNoPrimary(error)) {
                    return false;
                }
            }
        }
        return true;
    }

    /**
     * Whether the other connections may be useless, too. If one of them got replies in the meantime, the server is only slow, and reopening
     * all would make it slower. An interrupt closes the connection of a virtual thread.
     */
    private boolean areOthersStale(RuntimeException e, long sentAt) {
        boolean isOnlySlow = JedisErrors.isTimeout(e) && lastReplies - sentAt > 0;
        return JedisErrors.connectionsAreStale(e)
                && !isOnlySlow
                && !Thread.currentThread().isInterrupted();
    }

    private List<List<Object>> roundTripOnOneSocket(Connection connection, List<List<RedisCall>> callers, long sentAt) {
        int usual = connection.getSoTimeout();
        // The driver silently replaces a closed socket by one with the usual timeout. Earlier replies then never come.
        int timeout = (int) Math.min(Integer.MAX_VALUE, usual + replicaMillis + 1);
        connection.setSoTimeout(timeout);
        RedisCall wait = replicaWait == null ? null : replicaWait.call();
        List<List<Object>> replies =
                roundTrip(connection, callers, wait, sentAt, new Replies(connection, maxNanos, nanoTime));
        if (connection.getSoTimeout() != timeout) {
            throw new JedisConnectionException(
                    "the connection was closed and opened again between two calls of a batch");
        }
        connection.setSoTimeout(usual);
        return replies;
    }

    /**
     * Sends calls together on a connection that keeps its settings. Closes it unless every reply counts.
     *
     * @return the reply to each call, which may be an error
     */
    static List<Object> ask(Connection connection, List<RedisCall> calls) {
        boolean isUsable = false;
        try {
            Replies ofAll = new Replies(connection, Long.MAX_VALUE, System::nanoTime);
            List<List<Object>> replies = roundTrip(connection, List.of(calls), null, System.nanoTime(), ofAll);
            isUsable = true;
            return replies.get(0);
        } finally {
            if (!isUsable) {
                // A reply that was not read would reach the next caller.
                connection.setBroken();
            }
        }
    }

    /** @param wait the last call of every caller; null if there is none */
    private static List<List<Object>> roundTrip(
            Connection connection,
            List<List<RedisCall>> callers,
            @Nullable RedisCall wait,
            long sentAt,
            Replies received) {
        RedisCall end = RedisCall.endOfRoundTrip(sentAt);
        RedisCall.Arguments arguments = new RedisCall.Arguments(end);
        for (List<RedisCall> calls : callers) {
            for (RedisCall call : calls) {
                connection.sendCommand(arguments.moveTo(call));
            }
        }
        if (wait != null) {
            connection.sendCommand(arguments.moveTo(wait));
        }
        connection.sendCommand(arguments.moveTo(end));
        List<List<Object>> replies = new ArrayList<>(callers.size());
        for (List<RedisCall> calls : callers) {
            List<Object> own = new ArrayList<>(calls.size() + 1);
            for (RedisCall call : calls) {
                own.add(received.next(call));
            }
            replies.add(own);
        }
        if (wait != null) {
            Object waited = received.next(wait);
            replies.forEach(own -> own.add(waited));
        }
        checkEnd(received.next(end), replies);
        return replies;
    }

    /** The replies of one round trip, and the time that was spent waiting for them. */
    private static final class Replies {
        private final Connection connection;
        private final long maxNanos;
        private final LongSupplier nanoTime;
        private long waited;

        Replies(Connection connection, long maxNanos, LongSupplier nanoTime) {
            this.connection = connection;
            this.maxNanos = maxNanos;
            this.nanoTime = nanoTime;
        }

        Object next(RedisCall call) {
            if (waited > maxNanos) {
                throw new JedisConnectionException(
                        new SocketTimeoutException("the replies to a batch come too slowly"));
            }
            long begin = nanoTime.getAsLong();
            try {
                return call.checked(connection.getOne());
            } catch (JedisDataException e) {
                return e;
            } finally {
                // The driver waits for no more than half of the limit. More means that this process was paused, and the
                // server may have sent all replies meanwhile.
                waited += Math.min(nanoTime.getAsLong() - begin, maxNanos / 2);
            }
        }
    }

    /**
     * Checks the reply to the end of a round trip, which may be an error only if all replies are. A server that is loading, say, replies to
     * everything with an error. Then there is no value that could reach the wrong caller.
     */
    private static void checkEnd(Object reply, List<List<Object>> others) {
        if (reply instanceof JedisDataException error
                && !others.stream().flatMap(List::stream).allMatch(JedisDataException.class::isInstance)) {
            throw new JedisConnectionException("Redis refused the end of a batch: " + error.getMessage(), error);
        }
    }
}
