package io.idempotence.server.redis;

import io.idempotence.internal.Causes;
import java.net.SocketTimeoutException;
import javax.net.ssl.SSLException;
import org.jspecify.annotations.Nullable;
import redis.clients.jedis.exceptions.JedisAccessControlException;
import redis.clients.jedis.exceptions.JedisClusterOperationException;
import redis.clients.jedis.exceptions.JedisConnectionException;

/** What the exceptions of Jedis mean. */
final class JedisErrors {
    private JedisErrors() {}

    /**
     * Whether the other connections that are open may be of no use either: the server was restarted, or is not the primary that
     * takes writes. It will be again, or another server answers at its address by now; only a new connection shows which.
     */
    static boolean connectionsAreStale(Throwable e) {
        return RedisErrors.isNoPrimary(e) || (isConnectionFailure(e) && !RedisErrors.isInterrupted(e));
    }

    private static boolean isConnectionFailure(Throwable e) {
        return e instanceof JedisClusterOperationException || Causes.has(e, JedisConnectionException.class);
    }

    /** No response within the time that the connection allows: the server is slow, or gone without a word. */
    static boolean isTimeout(Throwable e) {
        return Causes.has(e, SocketTimeoutException.class);
    }

    /** Why, in words that hold no key and no password. */
    static String reason(Throwable e) {
        return RedisErrors.reason(e, JedisErrors::ownReason);
    }

    private static @Nullable String ownReason(Throwable e) {
        if (Causes.has(e, JedisAccessControlException.class)) {
            return "Redis denies the user or the password, or the user lacks a right";
        }
        if (Causes.has(e, JedisConnectionException.class) && !Causes.has(e, SSLException.class)) {
            return "no connection, or no answer in time";
        }
        return e instanceof JedisClusterOperationException
                ? "no node of the Cluster answers, or none is responsible"
                : null;
    }
}
