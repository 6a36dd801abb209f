package io.idempotence.server.redis;

import io.idempotence.server.redis.Redis.NothingWrittenException;
import io.idempotence.server.storage.StorageUnavailableException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** A check of the rights that a Redis user needs for records. It changes nothing, and works on a server that refuses writes. */
final class UserRights {
    private static final LuaScript PROBE = LuaScript.load("rights.lua", byte[].class, List.class);
    private static final Pattern COMMAND = Pattern.compile("run the '([a-z|]{1,30})' command");
    private static final Pattern KEYS = Pattern.compile("(?i)no permissions to access (?:one of the keys|a key)");

    private final Function<RedisCall, Object> send;
    private final List<String> missing = new ArrayList<>();

    private UserRights(Function<RedisCall, Object> send) {
        this.send = send;
    }

    /**
     * Tries every command.
     *
     * @param key a key that is never written
     * @param send sends a call to a server that has the key
     * @param more further calls that must be allowed, besides scripts and their commands
     * @throws StorageUnavailableException if a right is missing; the message lists all of them and how to grant them
     */
    static void check(String name, byte[] key, Function<RedisCall, Object> send, List<RedisCall> more) {
        UserRights rights = new UserRights(send);
        if (rights.attempt(RedisCall.eval(PROBE, key)) instanceof List<?> denied) {
            denied.forEach(command -> rights.missing.add("+" + RedisCall.text(command)));
            rights.attempt(RedisCall.evalsha(PROBE, key));
        }
        more.forEach(rights::attempt);
        if (!rights.missing.isEmpty()) {
            throw StorageUnavailableException.notSent(
                    name + " cannot be used: " + lacking(String.join(" ", rights.missing)), null);
        }
    }

    private @Nullable Object attempt(RedisCall call) {
        try {
            return send.apply(call);
        } catch (NothingWrittenException e) {
            missing.add(missing(e.reason()).orElseThrow(() -> e));
            return null;
        }
    }

    /** The missing right and its fix, if Redis denied one; empty for another error. */
    static Optional<String> explained(Throwable e) {
        return missing(e).map(UserRights::lacking);
    }

    /** The rule that would grant what Redis denied; empty for another error. */
    private static Optional<String> missing(Throwable e) {
        String message = String.valueOf(e.getMessage());
        if (KEYS.matcher(message).find()) {
            return Optional.of("~idem:*");
        }
        Matcher command = COMMAND.matcher(message);
        return command.find() ? Optional.of("+" + command.group(1)) : Optional.empty();
    }

    private static String lacking(String rules) {
        return "the Redis user lacks the right " + rules + "; grant it with ACL SETUSER <user> " + rules;
    }
}
