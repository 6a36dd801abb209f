package io.idempotence.server.redis;

import io.idempotence.server.redis.internal.LuaScript;
import io.idempotence.server.redis.internal.Redis;
import io.idempotence.server.redis.internal.RedisErrors;
import io.idempotence.server.storage.StorageUnavailableException;
import java.time.Duration;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A Redis that connects at the first use, and retries at later uses until it succeeds. Before that every call fails and certainly writes
 * nothing.
 */
final class LazyRedis implements Redis {
    /** How long after a failed attempt to connect further calls fail at once, instead of waiting for the same server. */
    private static final long FAILURE_HOLDS_NANOS = Duration.ofSeconds(1).toNanos();

    /** How long a call waits for the first contact that another thread makes. If that fails sooner, the call fails with it. */
    private static final long WAIT_FOR_ANOTHER_NANOS = Duration.ofSeconds(5).toNanos();

    private final String name;
    private final Supplier<Redis> connector;
    private final ReentrantLock connecting = new ReentrantLock();
    private volatile @Nullable Redis connected;
    private volatile @Nullable ConnectFailure failure;
    private boolean closed;

    private record ConnectFailure(StorageUnavailableException why, long nanoTime) {}

    LazyRedis(String name, Supplier<Redis> connector) {
        this.name = name;
        this.connector = connector;
    }

    @Override
    public String name() {
        Redis redis = connected;
        return redis == null ? name : redis.name();
    }

    @Override
    public Object run(LuaScript script, byte[] key, byte[]... args) {
        return connected().run(script, key, args);
    }

    @Override
    public Object runReplicated(LuaScript script, byte[] key, byte[]... args) {
        return connected().runReplicated(script, key, args);
    }

    @Override
    public int runsPerRoundTrip() {
        Redis redis = connected;
        return redis == null ? 1 : redis.runsPerRoundTrip();
    }

    @Override
    public List<Object> runAllReplicated(LuaScript script, List<ScriptRun> runs) {
        return connected().runAllReplicated(script, runs);
    }

    @Override
    public Iterator<List<ScannedKey>> scan(String pattern, int pageSize, LuaScript read) {
        return connected().scan(pattern, pageSize, read);
    }

    @Override
    public String reason(RuntimeException e) {
        Redis redis = connected;
        return redis == null ? RedisErrors.reason(e, driver -> null) : redis.reason(e);
    }

    /** Closes the connection. One that is being opened is closed as soon as it is open. */
    @Override
    public void close() {
        connecting.lock();
        try {
            closed = true;
            Redis redis = connected;
            if (redis != null) {
                redis.close();
            }
        } finally {
            connecting.unlock();
        }
    }

    private Redis connected() {
        Redis redis = connected;
        if (redis != null) {
            return redis;
        }
        failAsBefore();
        if (!isMyTurn()) {
            throw notConnected("another thread is still connecting for the first time", null);
        }
        try {
            redis = connected;
            if (redis == null) {
                failAsBefore();
                redis = connect();
            }
            return redis;
        } finally {
            connecting.unlock();
        }
    }

    private Redis connect() {
        if (closed) {
            throw notConnected("the storage is closed", null);
        }
        try {
            Redis redis = connector.get();
            connected = redis;
            failure = null;
            return redis;
        } catch (StorageUnavailableException e) {
            // An interrupt concerns this thread only. It closes the connection that a virtual thread opens.
            if (!RedisErrors.isInterrupted(e) && !Thread.currentThread().isInterrupted()) {
                failure = new ConnectFailure(e, System.nanoTime());
            }
            throw new NothingWrittenException(e);
        }
    }

    private void failAsBefore() {
        ConnectFailure before = failure;
        if (before != null && System.nanoTime() - before.nanoTime() < FAILURE_HOLDS_NANOS) {
            throw new NothingWrittenException(before.why());
        }
    }

    private boolean isMyTurn() {
        try {
            return connecting.tryLock(WAIT_FOR_ANOTHER_NANOS, TimeUnit.NANOSECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw notConnected("interrupted while another thread was connecting", e);
        }
    }

    private NothingWrittenException notConnected(String why, @Nullable Throwable cause) {
        return new NothingWrittenException(
                new StorageUnavailableException(name + " is not connected to yet: " + why, cause));
    }
}
