package io.idempotence.server.redis;

import io.idempotence.internal.Causes;
import io.idempotence.server.storage.StorageUnavailableException;
import java.net.SocketTimeoutException;
import java.util.NoSuchElementException;
import java.util.Objects;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.SSLException;
import org.jspecify.annotations.Nullable;
import redis.clients.jedis.exceptions.JedisAccessControlException;
import redis.clients.jedis.exceptions.JedisClusterOperationException;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisDataException;

/** What the driver's exceptions mean. */
final class RedisErrors {
    private static final String CORRUPT = "IDEMCORRUPT ";
    // Redis 6.2 puts the line of the script before the code, and a minus.
    private static final Pattern CODE = Pattern.compile(
            "\\b(OOM|READONLY|LOADING|MISCONF|NOREPLICAS|MASTERDOWN|CLUSTERDOWN|CROSSSLOT|TRYAGAIN|MOVED|ASK|BUSY"
                    + "|NOPERM|NOAUTH|EXECABORT)\\b");
    private static final Pattern NO_PRIMARY = Pattern.compile("READONLY|LOADING|NOREPLICAS|MASTERDOWN");
    private static final Pattern REPLICA = Pattern.compile("READONLY|MASTERDOWN");

    private RedisErrors() {}

    /** Why a record cannot be read, if a script failed for that reason; otherwise null. */
    static @Nullable String corruption(Throwable e) {
        String message = e.getMessage();
        return e instanceof JedisDataException && message != null && message.startsWith(CORRUPT)
                ? message.substring(CORRUPT.length())
                : null;
    }

    /**
     * Whether the other connections that are open may be of no use either: the server was restarted, or is not the primary that
     * takes writes. It will be again, or another server answers at its address by now; only a new connection shows which.
     */
    static boolean connectionsAreStale(Throwable e) {
        return isNoPrimary(e) || (isConnectionFailure(e) && !isInterrupted(e));
    }

    /** No response within the time that the connection allows: the server is slow, or gone without a word. */
    static boolean isTimeout(Throwable e) {
        return Causes.has(e, SocketTimeoutException.class);
    }

    /** The server answers, and is not, or not yet, the primary that takes writes. */
    static boolean isNoPrimary(Throwable e) {
        return NO_PRIMARY.matcher(code(e)).matches();
    }

    /** The server answers, and is a replica. */
    static boolean isReplica(Throwable e) {
        return REPLICA.matcher(code(e)).matches();
    }

    static boolean isInterrupted(Throwable e) {
        return Causes.has(e, InterruptedException.class);
    }

    /** Redis is well, and refuses this write because it is full. */
    static boolean isFull(Throwable e) {
        return code(e).equals("OOM");
    }

    private static boolean isConnectionFailure(Throwable e) {
        return e instanceof JedisClusterOperationException || Causes.has(e, JedisConnectionException.class);
    }

    private static String code(Throwable e) {
        String message = e.getMessage();
        if (e instanceof JedisDataException && message != null) {
            Matcher code = CODE.matcher(message);
            if (code.find()) {
                return code.group(1);
            }
        }
        return "";
    }

    /** Why, in words that hold no key and no password. */
    static String reason(Throwable e) {
        if (e instanceof StorageUnavailableException) {
            return Objects.requireNonNullElse(e.getMessage(), "it was not connected to");
        }
        if (isInterrupted(e)) {
            return "interrupted while waiting for a connection";
        }
        if (Causes.has(e, NoSuchElementException.class)) {
            return "no free connection in the pool in time";
        }
        if (e instanceof ReplicaWait.TooFewException) {
            return Objects.requireNonNullElse(e.getMessage(), "too few replicas have the write");
        }
        String message = Objects.requireNonNullElse(e.getMessage(), "");
        Optional<String> right = UserRights.explained(e);
        if (right.isPresent()) {
            return right.get();
        }
        if (Causes.has(e, JedisAccessControlException.class)) {
            return "Redis denies the user or the password, or the user lacks a right";
        }
        if (Causes.has(e, SSLException.class)) {
            return "TLS failed; the JVM must trust the server's certificate, and the certificate must name the host";
        }
        if (Causes.has(e, JedisConnectionException.class)) {
            return "no connection, or no answer in time";
        }
        if (e instanceof JedisClusterOperationException) {
            return "no node of the Cluster answers, or none is responsible";
        }
        if (message.contains("can't run this command")) {
            return "the Redis user lacks the right to a command";
        }
        String code = code(e);
        return code.isEmpty() ? e.getClass().getSimpleName() : "Redis responds " + code;
    }
}
