package io.idempotence.client.internal.call;

import io.idempotence.IdempotenceId;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

/**
 * A warning about a call whose outcome is unknown and that is followed by the same call under a new ID, because the server half cannot
 * detect such a duplicate. It is logged once per method. Only the last unknown call is stored: an outage has many, and one line is enough.
 * Thread-safe.
 */
final class RepeatWarning {
    /** The time within which an equal call counts as a retry. A later one is more often an equal order than the same one. */
    private static final long SHORTLY_NANOS = Duration.ofMinutes(1).toNanos();

    private final Logger log;
    private final String client;
    private final String method;
    private final AtomicBoolean logged = new AtomicBoolean();
    private volatile @Nullable UnknownCall last;

    /** @param log the logger of the HTTP client library's half */
    RepeatWarning(Logger log, String client, String method) {
        this.log = log;
        this.client = client;
        this.method = method;
    }

    /**
     * A call whose outcome is unknown.
     *
     * @param bodyHash the hash of its body
     */
    record UnknownCall(IdempotenceId id, String url, int bodyHash, long endedAt) {}

    /** @param url the call's URL, in the same form as for {@link #before} */
    void endedUnknown(IdempotenceId id, String url, int bodyHash) {
        if (!logged.get()) {
            last = new UnknownCall(id, url, bodyHash, System.nanoTime());
        }
    }

    /** Removes the unknown call with this ID, because its outcome is now known. */
    void endedKnown(IdempotenceId id) {
        UnknownCall before = last;
        if (before != null && before.id.equals(id)) {
            last = null;
        }
    }

    /**
     * The unknown call that a new call may repeat: it ended shortly before and had the same URL, but another ID.
     *
     * @param id the ID of the new call
     * @param url returns its URL, with or without the address of the target; called only if there is an unknown call
     * @return null if there is none
     */
    @Nullable
    UnknownCall before(IdempotenceId id, Supplier<String> url) {
        UnknownCall before = last;
        return before != null
                        && System.nanoTime() - before.endedAt <= SHORTLY_NANOS
                        && before.url.equals(url.get())
                        && !before.id.equals(id)
                ? before
                : null;
    }

    /** Logs the warning if the body of the call that may repeat {@code before} has the same hash. */
    void sends(int bodyHash, UnknownCall before) {
        if (before.bodyHash != bodyHash || !logged.compareAndSet(false, true)) {
            return;
        }
        last = null;
        log.warn(
                "{} of {} was called again with the same arguments after a call whose outcome is unknown, under a new ID: if that"
                        + " is a retry, the operation may be executed twice. Put the retry inside IdempotenceScope.with or saving,"
                        + " or ask again with IdempotenceScope.resume and the ID of the exception. This is logged once",
                method,
                client);
    }
}
