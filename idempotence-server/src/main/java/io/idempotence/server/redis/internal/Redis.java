package io.idempotence.server.redis.internal;

import java.util.Iterator;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The Redis that contains the records, behind one driver. Thread-safe.
 *
 * <p>Every method throws the driver's own exception if Redis may have executed the command, and {@link NothingWrittenException} if it has
 * certainly written nothing.
 */
public interface Redis extends AutoCloseable {
    /** The logger that operators see. */
    Logger LOG = LoggerFactory.getLogger("io.idempotence.server.redis.RedisIdempotenceStorage");

    /** The servers' names for messages, without credentials. */
    String name();

    /** Runs a script on one key. One round trip, or two if the server does not have the script yet. */
    Object run(LuaScript script, byte[] key, byte[]... args);

    /**
     * Like {@link #run}, for a write that counts only when replicas have it, if that is configured. It never is on a connection of the
     * application, whose other writes {@code WAIT} would count.
     *
     * @throws TooFewReplicasException if Redis wrote, and too few replicas are known to have the write
     */
    default Object runReplicated(LuaScript script, byte[] key, byte[]... args) {
        return run(script, key, args);
    }

    /** How many runs {@link #runAllReplicated} sends in one round trip. */
    default int runsPerRoundTrip() {
        return 1;
    }

    /**
     * Runs a script on several keys in one round trip, each as by {@link #runReplicated}. Only for as many runs as {@link
     * #runsPerRoundTrip} allows, if that is more than 1.
     *
     * @return the reply to each run, or the exception that it ended with
     * @throws RuntimeException if any of them may have been executed
     */
    default List<Object> runAllReplicated(LuaScript script, List<ScriptRun> runs) {
        throw new UnsupportedOperationException("each run needs a round trip of its own");
    }

    /** Walks over the keys of every primary, page by page, and runs a script on each key. */
    Iterator<List<ScannedKey>> scan(String pattern, int pageSize, LuaScript script);

    /** The reason of a failed call, without keys and passwords. */
    String reason(RuntimeException e);

    /** Closes the connections that were opened here. */
    @Override
    void close();

    /**
     * A key that a scan found.
     *
     * @param reply of the script that read it; a {@link RuntimeException} if that was an error
     */
    record ScannedKey(byte[] key, Object reply) {}

    /** A failure of a call that has certainly written nothing: it was never sent, or Redis replied with an error. */
    final class NothingWrittenException extends RuntimeException {
        private static final long serialVersionUID = 1L;

        private final RuntimeException reason;

        public NothingWrittenException(RuntimeException reason) {
            super(reason);
            this.reason = reason;
        }

        /** The driver's exception. */
        public RuntimeException reason() {
            return reason;
        }
    }

    /** A write that too few replicas are known to have. The primary has it. */
    final class TooFewReplicasException extends RuntimeException {
        private static final long serialVersionUID = 1L;

        private final transient Object reply;

        public TooFewReplicasException(String message, Object reply) {
            super(message);
            this.reply = reply;
        }

        /** The reply of the script. */
        public Object reply() {
            return reply;
        }
    }

    /** A script's key and arguments. */
    record ScriptRun(byte[] key, byte[]... arguments) {}
}
