package io.idempotence.server.redis;

import java.util.Iterator;
import java.util.List;

/**
 * The Redis that the records are in, behind one driver. Thread-safe.
 *
 * <p>Every method throws the driver's own exception when Redis may have executed the command, and {@link NothingWrittenException}
 * when it certainly has written nothing.
 */
interface Redis extends AutoCloseable {
    /** Which servers these are, for messages; no credentials. */
    String name();

    /** Runs a script on one key. One round trip, and a second one when the server does not know the script yet. */
    Object run(LuaScript script, byte[] key, byte[]... args);

    /**
     * The same, for a write that counts only when replicas have it, where that was asked for.
     *
     * @throws ReplicaWait.TooFewException if Redis wrote, and too few replicas are known to have it
     */
    Object runReplicated(LuaScript script, byte[] key, byte[]... args);

    /** Walks over the keys of every primary, page by page, and runs a script on each key. */
    Iterator<List<RecordScan.Read>> scan(String pattern, int pageSize, LuaScript script);

    /** Why a call failed, in words that hold no key and no password. */
    String reason(RuntimeException e);

    /** Closes what was opened here. */
    @Override
    void close();
}
