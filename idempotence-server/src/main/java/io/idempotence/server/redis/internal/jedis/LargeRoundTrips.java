package io.idempotence.server.redis.internal.jedis;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import redis.clients.jedis.Connection;
import redis.clients.jedis.exceptions.JedisConnectionException;

/**
 * The round trips in flight that send more than the buffers of a socket hold. The driver writes without a timeout. If the server hangs,
 * such a write would block as long as the server does, and would keep its connection. So other callers close the connection. Thread-safe,
 * without a thread of its own.
 */
final class LargeRoundTrips {
    /** Null in Jedis 6.0, which cannot close a connection that writes. */
    private static final @Nullable Method FORCE_DISCONNECT = forceDisconnect();

    private final Queue<LargeRoundTrip> underWay = new ConcurrentLinkedQueue<>();

    /** Each is equal only to itself. Whoever removes it from the queue decides about its connection. */
    private static final class LargeRoundTrip {
        final Connection connection;
        final long due;

        LargeRoundTrip(Connection connection, Duration longest) {
            this.connection = connection;
            this.due = System.nanoTime() + longest.toNanos();
        }
    }

    /**
     * Makes a large round trip.
     *
     * @param longest how long it may take
     * @throws JedisConnectionException if the connection was closed meanwhile, or is about to be
     */
    <T> T run(Connection connection, Duration longest, Supplier<T> roundTrip) {
        LargeRoundTrip own = new LargeRoundTrip(connection, longest);
        underWay.add(own);
        T replies;
        try {
            replies = roundTrip.get();
        } catch (RuntimeException e) {
            throw underWay.remove(own) ? e : late(e);
        } catch (Error e) {
            underWay.remove(own);
            throw e;
        }
        if (!underWay.remove(own)) {
            throw late(null);
        }
        return replies;
    }

    private static JedisConnectionException late(@Nullable RuntimeException closed) {
        SocketTimeoutException late = new SocketTimeoutException("the server has not read a large call in time");
        if (closed != null) {
            late.addSuppressed(closed);
        }
        return new JedisConnectionException(late);
    }

    /** Closes the connections of those that take too long. Costs next to nothing if none is under way. */
    void closeOverdue() {
        for (LargeRoundTrip one : underWay) {
            if (System.nanoTime() - one.due > 0 && underWay.remove(one)) {
                close(one.connection);
            }
        }
    }

    private static void close(Connection connection) {
        if (FORCE_DISCONNECT == null) {
            return;
        }
        try {
            FORCE_DISCONNECT.invoke(connection);
        } catch (IllegalAccessException | InvocationTargetException e) {
            throw new IllegalStateException("the driver cannot close a connection", e);
        }
    }

    private static @Nullable Method forceDisconnect() {
        try {
            return Connection.class.getMethod("forceDisconnect");
        } catch (NoSuchMethodException e) {
            return null;
        }
    }
}
