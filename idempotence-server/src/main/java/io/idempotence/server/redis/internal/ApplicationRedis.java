package io.idempotence.server.redis.internal;

import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Redis through a client or a driver of the application, which closes it itself. The server's set-up is read once, after the first call
 * that succeeded, to warn of its risks. If that fails, as for a user without the right to {@code INFO}, the set-up stays unknown.
 */
public abstract class ApplicationRedis implements Redis {
    private static final LuaScript INFO = LuaScript.load("info.lua", byte[].class);

    private final AtomicBoolean isSetUpRead = new AtomicBoolean();

    @Override
    public final Object run(LuaScript script, byte[] key, byte[]... args) {
        Object reply = send(script, key, args);
        if (!isSetUpRead.get() && isSetUpRead.compareAndSet(false, true)) {
            warnOfRisks(key);
        }
        return reply;
    }

    /** Runs a script as {@link #run} promises. */
    protected abstract Object send(LuaScript script, byte[] key, byte[]... args);

    private void warnOfRisks(byte[] key) {
        try {
            ServerInfo.parse(send(INFO, key)).risks().forEach(risk -> LOG.warn("{}: {}", name(), risk));
        } catch (RuntimeException e) {
            if (RedisErrors.isInterrupted(e)) {
                Thread.currentThread().interrupt();
            }
            LOG.debug("{}: its set-up could not be read: {}", name(), reason(e));
        }
    }

    @Override
    public final void close() {}
}
