package io.idempotence.server.redis.internal.jedis;

import io.idempotence.server.redis.internal.LuaScript;
import io.idempotence.server.redis.internal.Redis.NothingWrittenException;
import io.idempotence.server.redis.internal.RedisErrors;
import io.idempotence.server.storage.StorageUnavailableException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** A check of the rights that a Redis user needs for records. It changes nothing, and works on a server that refuses writes. */
final class UserRights {
    private static final LuaScript PROBE = LuaScript.load("rights.lua", byte[].class, List.class);

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
                    name + " cannot be used: " + RedisErrors.lacking(String.join(" ", rights.missing)), null);
        }
    }

    private @Nullable Object attempt(RedisCall call) {
        try {
            return send.apply(call);
        } catch (NothingWrittenException e) {
            // A replica refuses WAIT whatever the user's rights; checkSetUp reports the replica.
            if (!RedisErrors.isWaitOnReplica(e.reason())) {
                missing.add(RedisErrors.missingRight(e.reason()).orElseThrow(() -> e));
            }
            return null;
        }
    }
}
