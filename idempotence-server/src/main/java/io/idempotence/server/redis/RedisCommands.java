package io.idempotence.server.redis;

import io.idempotence.server.storage.StorageUnavailableException;
import java.util.List;

/**
 * The three commands of Redis that records need, sent by a driver of the application's choice: see {@link RedisIdempotenceStorage#over}.
 * Implementations are thread-safe.
 *
 * <p><b>Replies.</b> An integer is a {@link Long}, a string a {@code byte[]}, an array a {@link List} of these. If a driver needs the type
 * of the reply in advance, use an array: a single value may come as a list of one.
 *
 * <p><b>Failures.</b> For an error reply of Redis, such as {@code NOSCRIPT No matching script}, throw an exception whose message is that
 * text, or that has such an exception as a cause. Throw everything else as the driver throws it. Only a call that was certainly not sent
 * may end with {@link StorageUnavailableException#notSent}.
 */
public interface RedisCommands {
    /**
     * Runs a script that the server has cached on one key ({@code EVALSHA}), on the server that has the key.
     *
     * @param sha1 the script's SHA-1, 40 hexadecimal digits; must not be changed
     * @param key the only key
     * @param arguments the script's arguments; must not be changed
     * @throws RuntimeException see above
     */
    Object evalsha(byte[] sha1, byte[] key, byte[]... arguments);

    /**
     * Runs a script on one key ({@code EVAL}), on the server that has the key. Called if that server does not have the script cached.
     *
     * @param script the script's source; must not be changed
     * @param key the only key
     * @param arguments the script's arguments; must not be changed
     * @throws RuntimeException see above
     */
    Object eval(byte[] script, byte[] key, byte[]... arguments);

    /**
     * Scans for keys ({@code SCAN}), in a Cluster on one primary after the other. Only for operators' lists.
     *
     * @param cursor {@code 0} at the beginning, otherwise {@link Page#next} of the page before
     * @param pattern the pattern of the keys
     * @param count about how many keys to visit
     * @return some keys, perhaps none
     * @throws RuntimeException see above
     */
    Page scan(String cursor, String pattern, int count);

    /**
     * A page of keys.
     *
     * @param next the cursor of the next page, {@code 0} after the last one. Any other value is opaque: it may contain which primary comes
     *     next
     * @param keys the keys; a key may occur more than once
     */
    record Page(String next, List<byte[]> keys) {}
}
