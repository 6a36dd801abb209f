package io.idempotence.server.storage;

import org.jspecify.annotations.Nullable;

/** The result of a write by the holder of a claim. */
public sealed interface WriteResult {
    /** A record that is as requested, now or already (T9 to T13). */
    record Done() implements WriteResult {}

    /** A record that had vanished and was stored anew (T15). The claim may have been lost to a second execution: alarm. */
    record StoredAfterLoss() implements WriteResult {}

    /** A record that has vanished, and nothing to store in its place (T16): alarm. */
    record Lost() implements WriteResult {}

    /**
     * A record that belongs to another owner or is finished otherwise; nothing was written (T14): alarm, unless the write is a release that
     * was executed before, without a reply.
     *
     * @param fence the record's fence. Greater than the claim's: the claim has ended or was taken over, and a later one followed
     * @param result the result of the owner that completed the same request, null if there is none; must not be changed
     */
    record Fenced(long fence, byte @Nullable [] result) implements WriteResult {}
}
