package io.idempotence.server.redis.internal.jedis;

import java.lang.reflect.InvocationTargetException;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import redis.clients.jedis.Connection;
import redis.clients.jedis.exceptions.JedisConnectionException;

/**
 * The round trips under way that send more than the buffers of a socket hold. The driver writes without a timeout. If the server hangs, such
 * a write would last as long, and its connection would be taken. So other callers close the connection. Thread-safe, without a thread of
 * its own.
 */
final class LargeRoundTrips {
    private final Queue<LargeRoundTrip> underWay = new ConcurrentLinkedQueue<>();
    private final long maxNanos;

    /** Each is equal only to itself. Whoever removes it from the queue decides about its connection. */
    private static final class LargeRoundTrip {
        final Connection connection;
        final long since = System.nanoTime();

        LargeRoundTrip(Connection connection) {
            this.connection = connection;
        }
    }

    /** @param longest how long one may take */
    LargeRoundTrips(Duration longest) {
        this.maxNanos = longest.toNanos();
    }

    /** @throws JedisConnectionException if the connection was closed meanwhile, or is about to be */
    <T> T run(Connection connection, Supplier<T> roundTrip) {
        LargeRoundTrip own = new LargeRoundTrip(connection);
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
        for (LargeRoundTrip first = underWay.peek(); first != null; first = underWay.peek()) {
            if (System.nanoTime() - first.since <= maxNanos) {
                return;
            }
            if (underWay.remove(first)) {
                close(first.connection);
            }
        }
    }

    private static void close(Connection connection) {
        try {
            Connection.class.getMethod("forceDisconnect").invoke(connection);
        } catch (NoSuchMethodException e) {
            // Jedis 6.0 cannot close a connection that writes.
        } catch (IllegalAccessException | InvocationTargetException e) {
            throw new IllegalStateException("the driver cannot close a connection", e);
        }
    }
}
