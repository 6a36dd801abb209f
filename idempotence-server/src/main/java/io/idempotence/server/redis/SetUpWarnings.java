package io.idempotence.server.redis;

import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The warnings about a server to which the application connects by itself. Its set-up is read once, after the first call that succeeded. If
 * that fails, as for a user without the right to {@code INFO}, the set-up stays unknown.
 */
final class SetUpWarnings {
    private static final Logger LOG = LoggerFactory.getLogger(RedisIdempotenceStorage.class);
    private static final LuaScript INFO = LuaScript.load("info.lua", byte[].class);

    private final Redis redis;
    private final AtomicBoolean read = new AtomicBoolean();

    SetUpWarnings(Redis redis) {
        this.redis = redis;
    }

    /** Warns if this is the first call that succeeded. */
    void afterCall(byte[] key) {
        if (!read.get() && read.compareAndSet(false, true)) {
            try {
                ServerInfo.parse(redis.run(INFO, key)).risks().forEach(risk -> LOG.warn("{}: {}", redis.name(), risk));
            } catch (RuntimeException e) {
                if (RedisErrors.isInterrupted(e)) {
                    Thread.currentThread().interrupt();
                }
                LOG.debug("{}: its set-up could not be read: {}", redis.name(), redis.reason(e));
            }
        }
    }
}
