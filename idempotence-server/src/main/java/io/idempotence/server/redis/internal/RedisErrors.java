package io.idempotence.server.redis.internal;

import io.idempotence.internal.Causes;
import io.idempotence.server.redis.internal.Redis.TooFewReplicasException;
import io.idempotence.server.storage.StorageUnavailableException;
import java.util.NoSuchElementException;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.SSLException;
import org.jspecify.annotations.Nullable;

/** The meaning of a failed call to Redis, by the text of the error reply, for every driver. */
public final class RedisErrors {
    private static final String CORRUPT = "IDEMCORRUPT ";
    private static final String UNKNOWN_SCRIPT = "NOSCRIPT ";
    private static final String WAIT_ON_REPLICA = "WAIT cannot be used with replica";
    /** A part of the error up to Redis 7.0. Later ones name the command. */
    private static final String DENIED_IN_SCRIPT = "can't run this command";
    /** The form of an error reply: its code; up to Redis 6.2, for a script, its position, and then a minus. */
    private static final Pattern RESPONSE = Pattern.compile("(?:[A-Z]+ |-|@user_script).*", Pattern.DOTALL);

    private static final Pattern CODE = Pattern.compile(
            "\\b(NOSCRIPT|OOM|READONLY|LOADING|MISCONF|NOREPLICAS|MASTERDOWN|CLUSTERDOWN|CROSSSLOT|TRYAGAIN|MOVED|ASK|BUSY"
                    + "|NOPERM|NOAUTH|EXECABORT)\\b");
    private static final Pattern NO_PRIMARY = Pattern.compile("READONLY|LOADING|NOREPLICAS|MASTERDOWN");
    private static final Pattern REPLICA = Pattern.compile("READONLY|MASTERDOWN");

    private static final Pattern DENIED_COMMAND = Pattern.compile("run the '([a-z|]{1,30})' command");
    private static final Pattern DENIED_KEYS =
            Pattern.compile("(?i)no permissions to access (?:one of the keys|a key)");

    private RedisErrors() {}

    /** The reason why a record cannot be read, if a script failed for that; otherwise null. */
    public static @Nullable String corruption(Throwable e) {
        String text = text(e);
        return text.startsWith(CORRUPT) ? text.substring(CORRUPT.length()) : null;
    }

    /** Whether the server does not have the script, and so has run nothing. */
    public static boolean isUnknownScript(Throwable e) {
        return text(e).startsWith(UNKNOWN_SCRIPT);
    }

    /** Whether the server responds, but is not, or not yet, the primary that takes writes. */
    public static boolean isNoPrimary(Throwable e) {
        return NO_PRIMARY.matcher(code(e)).matches();
    }

    /** Whether the server responds, and believes that nobody has some slots, perhaps because it was away for long. */
    public static boolean isClusterDown(Throwable e) {
        return code(e).equals("CLUSTERDOWN");
    }

    /** Whether the server responds, but is a replica. */
    public static boolean isReplica(Throwable e) {
        return REPLICA.matcher(code(e)).matches();
    }

    /** Whether a replica refuses {@code WAIT}. */
    public static boolean isWaitOnReplica(Throwable e) {
        return text(e).contains(WAIT_ON_REPLICA);
    }

    /** Whether Redis is healthy, and refuses this write because it is full. */
    public static boolean isFull(Throwable e) {
        return code(e).equals("OOM");
    }

    /** Whether Redis demands a password of a client that gave none. */
    public static boolean isWithoutPassword(Throwable e) {
        return code(e).equals("NOAUTH");
    }

    public static boolean isInterrupted(Throwable e) {
        return Causes.has(e, InterruptedException.class);
    }

    /** Whether this is an error reply of Redis. */
    public static boolean isResponse(Throwable e) {
        String text = text(e);
        return text.startsWith(CORRUPT) || text.contains(DENIED_IN_SCRIPT) || !code(e).isEmpty();
    }

    /**
     * The reason of a failure, without keys and passwords.
     *
     * @param ofDriver the meaning of an exception of the driver's own, or null if it cannot tell
     */
    public static String reason(Throwable e, Function<Throwable, @Nullable String> ofDriver) {
        if (e instanceof StorageUnavailableException) {
            return Objects.requireNonNullElse(e.getMessage(), "there was no connection");
        }
        if (isInterrupted(e)) {
            return "interrupted while waiting for a connection";
        }
        if (Causes.has(e, NoSuchElementException.class)) {
            return "no free connection in the pool in time";
        }
        if (e instanceof TooFewReplicasException) {
            return text(e);
        }
        Optional<String> right = missingRight(e);
        if (right.isPresent()) {
            return lacking(right.get());
        }
        String known = ofDriver.apply(e);
        if (known != null) {
            return known;
        }
        if (text(e).contains(DENIED_IN_SCRIPT)) {
            return "the Redis user lacks the right to a command";
        }
        if (Causes.has(e, SSLException.class)) {
            return "TLS failed; the JVM must trust the server's certificate, and the certificate must name the host";
        }
        String code = code(e);
        return code.isEmpty() ? e.getClass().getSimpleName() : "Redis replied " + code;
    }

    /** The rule that would grant what Redis denied; empty for another error. */
    public static Optional<String> missingRight(Throwable e) {
        if (DENIED_KEYS.matcher(text(e)).find()) {
            return Optional.of("~idem:*");
        }
        Matcher command = DENIED_COMMAND.matcher(text(e));
        return command.find() ? Optional.of("+" + command.group(1)) : Optional.empty();
    }

    /** Which rights a user lacks, and the fix. */
    public static String lacking(String rules) {
        return "the Redis user lacks the right " + rules + "; grant it with ACL SETUSER <user> " + rules;
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
