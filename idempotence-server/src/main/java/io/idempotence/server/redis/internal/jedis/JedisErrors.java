package io.idempotence.server.redis.internal.jedis;

import io.idempotence.internal.Causes;
import io.idempotence.server.redis.internal.RedisErrors;
import java.net.SocketTimeoutException;
import java.net.UnknownHostException;
import java.util.Arrays;
import javax.net.ssl.SSLException;
import org.jspecify.annotations.Nullable;
import redis.clients.jedis.exceptions.JedisAccessControlException;
import redis.clients.jedis.exceptions.JedisClusterOperationException;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisDataException;

/** The meaning of the exceptions of Jedis. */
final class JedisErrors {
    private JedisErrors() {}

    /**
     * Whether the other open connections may be useless, too: the server was restarted, or is not the primary that takes writes. It may
     * become the primary again, or another server may respond at its address. Only a new connection shows that.
     */
    static boolean connectionsAreStale(Throwable e) {
        return RedisErrors.isNoPrimary(e) || (isConnectionFailure(e) && !RedisErrors.isInterrupted(e));
    }

    private static boolean isConnectionFailure(Throwable e) {
        return e instanceof JedisClusterOperationException || Causes.has(e, JedisConnectionException.class);
    }

    /** Whether there was no reply within the timeout of the connection: the server is slow or has silently disappeared. */
    static boolean isTimeout(Throwable e) {
        return Causes.has(e, SocketTimeoutException.class);
    }

    /** Whether a start failed because of a timeout, which the driver may only have kept as a suppressed exception. */
    static boolean hasTimedOut(Throwable e) {
        return hasTimedOut(e, 3);
    }

    /** @param depth a limit, because exceptions may form a cycle */
    private static boolean hasTimedOut(Throwable e, int depth) {
        return isTimeout(e)
                || (depth > 0
                        && Causes.of(e)
                                .flatMap(cause -> Arrays.stream(cause.getSuppressed()))
                                .anyMatch(suppressed -> hasTimedOut(suppressed, depth - 1)));
    }

    /** Whether the settings may be for another kind of server: one that responds, but with an error that has no code of its own. */
    static boolean mayBeOfAnotherKind(Throwable e) {
        return e instanceof JedisClusterOperationException
                || (Causes.has(e, JedisDataException.class)
                        && !Causes.has(e, JedisAccessControlException.class)
                        && !RedisErrors.isResponse(e));
    }

    /** The reason of a failure, without keys and passwords. */
    static String reason(Throwable e) {
        return RedisErrors.reason(e, JedisErrors::ownReason);
    }

    private static @Nullable String ownReason(Throwable e) {
        if (Causes.has(e, JedisAccessControlException.class)) {
            return RedisErrors.isWithoutPassword(e)
                    ? "Redis demands a password, and none was given (NOAUTH)"
                    : "Redis denies the user or the password, or the user lacks a right";
        }
        if (Causes.has(e, UnknownHostException.class)) {
            return "no connection: its host is unknown";
        }
        if (Causes.has(e, JedisConnectionException.class) && !Causes.has(e, SSLException.class)) {
            return "no connection, or no reply in time";
        }
        return e instanceof JedisClusterOperationException
                ? "no node of the Cluster responds, or none has the key's slot"
                : null;
    }
}
