package io.idempotence.server.redis.internal.jedis;

import java.time.Duration;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import org.apache.commons.pool2.impl.GenericObjectPoolConfig;
import redis.clients.jedis.Connection;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.providers.SentineledConnectionProvider;

/**
 * Connections to the primary that Sentinels report. The driver has one thread for each Sentinel, which listens for a new primary.
 *
 * <p>If the driver is closed just after it was opened, a thread that begins or connects later listens for ever, and may open a pool to a new
 * primary. {@link #close} stops these, too.
 */
final class SentinelConnections extends SentineledConnectionProvider {
    /** The delay before a lost Sentinel is subscribed to again. Until then it cannot announce a new primary. */
    private static final Duration LISTEN_AGAIN = Duration.ofSeconds(1);

    private static final long LOOK_AGAIN_NANOS = Duration.ofMillis(1).toNanos();

    private final long maxCloseNanos;

    @SuppressWarnings("deprecation") // The replacement does not exist in every supported version.
    SentinelConnections(
            String primaryName,
            JedisClientConfig client,
            GenericObjectPoolConfig<Connection> pool,
            Set<HostAndPort> sentinels,
            JedisClientConfig sentinelClient) {
        super(primaryName, client, pool, sentinels, sentinelClient, LISTEN_AGAIN.toMillis());
        // A thread connects, and awaits some replies before it listens.
        this.maxCloseNanos = Duration.ofMillis(
                        sentinelClient.getConnectionTimeoutMillis() + 4L * sentinelClient.getSocketTimeoutMillis())
                .toNanos();
    }

    /** Waits until no thread listens, but no longer than a Sentinel that hangs may take until the driver gives it up. */
    @Override
    public void close() {
        try {
            super.close();
        } finally {
            stopListeners();
            // A pool to a new primary, which a listener opened meanwhile.
            super.close();
        }
    }

    private void stopListeners() {
        long begin = System.nanoTime();
        boolean interrupted = false;
        for (SentinelListener listener : sentinelListeners) {
            while (listensAfterShutdown(listener) && System.nanoTime() - begin < maxCloseNanos) {
                LockSupport.parkNanos(LOOK_AGAIN_NANOS);
                interrupted |= Thread.interrupted();
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private static boolean listensAfterShutdown(SentinelListener listener) {
        // Read before the shutdown: a thread that sleeps now, after a failure to connect, has begun, and ends when it
        // wakes up.
        boolean sleeps = listener.getState() == Thread.State.TIMED_WAITING;
        listener.shutdown();
        return listener.isAlive() && !sleeps;
    }
}
