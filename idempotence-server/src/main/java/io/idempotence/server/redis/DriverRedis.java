package io.idempotence.server.redis;

import io.idempotence.internal.Causes;
import io.idempotence.server.redis.internal.ApplicationRedis;
import io.idempotence.server.redis.internal.LuaScript;
import io.idempotence.server.redis.internal.RedisErrors;
import io.idempotence.server.storage.StorageUnavailableException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;

/** Redis through a driver of the application's choice. */
final class DriverRedis extends ApplicationRedis {
    private final RedisCommands commands;

    DriverRedis(RedisCommands commands) {
        this.commands = commands;
    }

    @Override
    public String name() {
        return "Redis (the application's driver)";
    }

    @Override
    protected Object send(LuaScript script, byte[] key, byte[]... args) {
        try {
            return commands.evalsha(script.sha1(), key, args);
        } catch (RuntimeException e) {
            RuntimeException why = ofRedis(e);
            if (!RedisErrors.isUnknownScript(why)) {
                throw certain(why);
            }
        }
        try {
            return commands.eval(script.source(), key, args);
        } catch (RuntimeException e) {
            throw certain(ofRedis(e));
        }
    }

    @Override
    public Iterator<List<ScannedKey>> scan(String pattern, int pageSize, LuaScript script) {
        return new Walk(pattern, pageSize, script);
    }

    @Override
    public String reason(RuntimeException e) {
        return RedisErrors.reason(ofRedis(e), driver -> null);
    }

    /** The error that Redis replied with, if an exception contains one. */
    private static RuntimeException ofRedis(RuntimeException thrown) {
        return Causes.of(thrown)
                .filter(RedisErrors::isResponse)
                .filter(RuntimeException.class::isInstance)
                .map(RuntimeException.class::cast)
                .findFirst()
                .orElse(thrown);
    }

    /**
     * Marks a failure as certain if Redis is full, so that this does not count as an outage, or if the driver says so itself. For other
     * errors the driver may have sent an earlier command.
     */
    private static RuntimeException certain(RuntimeException e) {
        boolean notSent = e instanceof StorageUnavailableException own && own.nothingWritten();
        return notSent || RedisErrors.isFull(e) ? new NothingWrittenException(e) : e;
    }

    private final class Walk implements Iterator<List<ScannedKey>> {
        private static final String END = "0";

        private final String pattern;
        private final int pageSize;
        private final LuaScript script;
        private String cursor = END;
        private boolean over;

        Walk(String pattern, int pageSize, LuaScript script) {
            this.pattern = pattern;
            this.pageSize = pageSize;
            this.script = script;
        }

        @Override
        public boolean hasNext() {
            return !over;
        }

        @Override
        public List<ScannedKey> next() {
            if (over) {
                throw new NoSuchElementException("every key was visited");
            }
            RedisCommands.Page page = commands.scan(cursor, pattern, pageSize);
            List<ScannedKey> reads = new ArrayList<>(page.keys().size());
            page.keys().forEach(key -> reads.add(new ScannedKey(key, read(key))));
            cursor = page.next();
            over = cursor.equals(END);
            return reads;
        }

        private Object read(byte[] key) {
            try {
                return run(script, key);
            } catch (RuntimeException e) {
                return e;
            }
        }
    }
}
