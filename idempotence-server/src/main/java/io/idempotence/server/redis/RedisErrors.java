package io.idempotence.server.redis;

import io.idempotence.internal.Causes;
import io.idempotence.server.storage.StorageUnavailableException;
import java.util.NoSuchElementException;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.SSLException;
import org.jspecify.annotations.Nullable;

/** What an exception of a call to Redis means, by the text of the error that Redis responded with, whatever the driver. */
final class RedisErrors {
    private static final String CORRUPT = "IDEMCORRUPT ";
    private static final String UNKNOWN_SCRIPT = "NOSCRIPT ";
    /** An error response begins with its code; up to Redis 6.2 that of a script with its place, and then a minus. */
    private static final Pattern RESPONSE = Pattern.compile("(?:[A-Z]+ |-|@user_script).*", Pattern.DOTALL);

    private static final Pattern CODE = Pattern.compile(
            "\\b(OOM|READONLY|LOADING|MISCONF|NOREPLICAS|MASTERDOWN|CLUSTERDOWN|CROSSSLOT|TRYAGAIN|MOVED|ASK|BUSY"
                    + "|NOPERM|NOAUTH|EXECABORT)\\b");
    private static final Pattern NO_PRIMARY = Pattern.compile("READONLY|LOADING|NOREPLICAS|MASTERDOWN");
    private static final Pattern REPLICA = Pattern.compile("READONLY|MASTERDOWN");

    private RedisErrors() {}

    /** Why a record cannot be read, if a script failed for that reason; otherwise null. */
    static @Nullable String corruption(Throwable e) {
        String text = text(e);
        return text.startsWith(CORRUPT) ? text.substring(CORRUPT.length()) : null;
    }

    /** The server does not know the script, and has run nothing. */
    static boolean isUnknownScript(Throwable e) {
        return text(e).startsWith(UNKNOWN_SCRIPT);
    }

    /** The server answers, and is not, or not yet, the primary that takes writes. */
    static boolean isNoPrimary(Throwable e) {
        return NO_PRIMARY.matcher(code(e)).matches();
    }

    /** The server answers, and is a replica. */
    static boolean isReplica(Throwable e) {
        return REPLICA.matcher(code(e)).matches();
    }

    /** Redis is well, and refuses this write because it is full. */
    static boolean isFull(Throwable e) {
        return code(e).equals("OOM");
    }

    static boolean isInterrupted(Throwable e) {
        return Causes.has(e, InterruptedException.class);
    }

    /** Whether this is an error that Redis responded with. */
    static boolean isResponse(Throwable e) {
        String text = text(e);
        return text.startsWith(CORRUPT) || text.startsWith(UNKNOWN_SCRIPT) || !code(e).isEmpty();
    }

    /**
     * Why, in words that hold no key and no password.
     *
     * @param ofDriver what an exception of the driver's own means, or null if that cannot be told
     */
    static String reason(Throwable e, Function<Throwable, @Nullable String> ofDriver) {
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
            return text(e);
        }
        Optional<String> right = UserRights.explained(e);
        if (right.isPresent()) {
            return right.get();
        }
        String known = ofDriver.apply(e);
        if (known != null) {
            return known;
        }
        if (text(e).contains("can't run this command")) {
            return "the Redis user lacks the right to a command";
        }
        if (Causes.has(e, SSLException.class)) {
            return "TLS failed; the JVM must trust the server's certificate, and the certificate must name the host";
        }
        String code = code(e);
        return code.isEmpty() ? e.getClass().getSimpleName() : "Redis responds " + code;
    }

    private static String code(Throwable e) {
        String text = text(e);
        if (RESPONSE.matcher(text).matches()) {
            Matcher code = CODE.matcher(text);
            if (code.find()) {
                return code.group(1);
            }
        }
        return "";
    }

    private static String text(Throwable e) {
        return Objects.requireNonNullElse(e.getMessage(), "");
    }
}
