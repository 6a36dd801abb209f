package io.idempotence.server.redis;

import java.util.List;

/**
 * The three commands of Redis that records need, sent by a driver of the application's choice: see {@link
 * RedisIdempotenceStorage#over}. Implementations are thread-safe.
 *
 * <p><b>Replies.</b> An integer is a {@link Long}, a string a {@code byte[]}, an array a {@link List} of these. A driver that has to be
 * told beforehand what a reply will be is told an array: a single value may come as a list of one.
 *
 * <p><b>Failures.</b> For an error that Redis responds with, such as {@code NOSCRIPT No matching script}, an exception is thrown whose
 * message is that text, or which such an exception caused. Everything else is thrown as the driver throws it.
 */
public interface RedisCommands {
    /**
     * Runs a script that the server knows on one key ({@code EVALSHA}), on the server that has the key.
     *
     * @param sha1 of the script, 40 hexadecimal digits; not to be changed
     * @param key the only key
     * @param arguments of the script
     * @return the reply
     * @throws RuntimeException see above
     */
    Object evalsha(byte[] sha1, byte[] key, byte[]... arguments);

    /**
     * Runs a script on one key ({@code EVAL}), on the server that has the key. Needed when that server does not know it yet.
     *
     * @param script its source; not to be changed
     * @param key the only key
     * @param arguments of the script
     * @return the reply
     * @throws RuntimeException see above
     */
    Object eval(byte[] script, byte[] key, byte[]... arguments);

    /**
     * Looks for keys ({@code SCAN}), in a Cluster on one primary after the other. Only for operators' lists.
     *
     * @param cursor {@code 0} at the beginning, otherwise what the page before said is next
     * @param pattern which keys
     * @param count about how many keys to look at
     * @return some keys, perhaps none
     * @throws RuntimeException see above
     */
    Page scan(String cursor, String pattern, int count);

    /**
     * Some of the keys.
     *
     * @param next the cursor of the page after this one, {@code 0} after the last one. Otherwise only the implementation has to
     *     understand it: it may hold which primary comes next
     * @param keys a key may come more than once
     */
    record Page(String next, List<byte[]> keys) {}
}
