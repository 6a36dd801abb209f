package io.idempotence.spring.server;

import io.idempotence.server.storage.StorageUnavailableException;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.api.async.RedisScriptingAsyncCommands;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import org.springframework.data.redis.connection.RedisConnection;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.ReturnType;

/**
 * Redis through Spring Data with Lettuce, on the application's connection, with a timeout of its own. The application's is a minute by
 * default, and Lettuce keeps commands for that time while it reconnects.
 */
final class LettuceCommands extends SpringDataCommands {
    private final Duration timeout;
    private final ReentrantLock connecting = new ReentrantLock();
    private volatile boolean connected;

    LettuceCommands(RedisConnectionFactory connections, Duration timeout) {
        super(connections, ReturnType.MULTI);
        this.timeout = timeout;
    }

    @Override
    public Object evalsha(byte[] sha1, byte[] key, byte[]... arguments) {
        String digest = new String(sha1, StandardCharsets.US_ASCII);
        return send(redis -> redis.evalsha(digest, ScriptOutputType.MULTI, new byte[][] {key}, arguments));
    }

    @Override
    public Object eval(byte[] script, byte[] key, byte[]... arguments) {
        return send(redis -> redis.eval(script, ScriptOutputType.MULTI, new byte[][] {key}, arguments));
    }

    private Object send(Function<RedisScriptingAsyncCommands<byte[], byte[]>, RedisFuture<Object>> command) {
        return connected ? onConnection(command) : oneAtATime(command);
    }

    /**
     * Sends a command before there is a connection. All threads share one, and each would wait for its turn to open it: with a server that
     * does not respond, for the sum of all connect timeouts.
     */
    private Object oneAtATime(Function<RedisScriptingAsyncCommands<byte[], byte[]>, RedisFuture<Object>> command) {
        try {
            if (!connecting.tryLock(timeout.toMillis(), TimeUnit.MILLISECONDS)) {
                throw StorageUnavailableException.notSent("another thread is still connecting to Redis", null);
            }
        } catch (InterruptedException e) {
            throw interrupted(e);
        }
        try {
            return onConnection(command);
        } finally {
            connecting.unlock();
        }
    }

    private Object onConnection(Function<RedisScriptingAsyncCommands<byte[], byte[]>, RedisFuture<Object>> command) {
        return on(redis -> {
            RedisScriptingAsyncCommands<byte[], byte[]> commands = commands(redis);
            // Even if Redis refuses the command: others need not wait for their turn any more.
            connected = true;
            return reply(command.apply(commands));
        });
    }

    private Object reply(RedisFuture<Object> future) {
        try {
            return future.get(timeout.toMillis(), TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
            future.cancel(false);
            throw new StorageUnavailableException("no reply within " + timeout.toMillis() + " ms", e);
        } catch (InterruptedException e) {
            future.cancel(false);
            throw interrupted(e);
        } catch (ExecutionException e) {
            throw e.getCause() instanceof RuntimeException fault ? fault : new RedisException(e.getCause());
        }
    }

    private static RedisException interrupted(InterruptedException e) {
        return new RedisException("interrupted", e);
    }

    @SuppressWarnings("unchecked") // Spring Data uses keys and values of bytes.
    private static RedisScriptingAsyncCommands<byte[], byte[]> commands(RedisConnection redis) {
        return (RedisScriptingAsyncCommands<byte[], byte[]>) redis.getNativeConnection();
    }
}
