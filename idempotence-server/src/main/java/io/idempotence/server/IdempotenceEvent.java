package io.idempotence.server;

/**
 * An event of the server half that operators may want to count. An attempt that waits for another one is counted as {@link #IN_PROGRESS}
 * when it arrives. After the wait its result is counted as well, unless the attempt is refused as in progress.
 */
public enum IdempotenceEvent {
    /** A first attempt, or one after a release, got the claim, or an ID was saved. */
    CLAIMED,
    /**
     * An attempt met a completed operation. It got the stored response, or was refused as result-unavailable. If the stored response
     * cannot be read, {@link #STORAGE_ERROR} follows. Or an ID to be saved was there already.
     */
    REPLAYED,
    /**
     * An ID was released: its next attempt runs. {@link IdempotenceListener#onReleased} gets the reason. Investigate it if a handler can
     * fail after it took effect.
     */
    RELEASED,
    /** An attempt met an earlier one that still runs. */
    IN_PROGRESS,
    /** Another request came under the same ID, and was refused as key-reused. */
    KEY_REUSED,
    /** An abandoned claim was taken over; the operation may run a second time, as its policy allows. */
    TAKE_OVER,
    /**
     * An attempt was refused because the outcome is unknown, an execution was marked unknown, or its completion could not be written
     * and was given up. Investigate it.
     */
    UNKNOWN,
    /** A late owner tried to finish and was stopped: another execution or an operator was faster. Compare the business data. */
    FENCED,
    /** A record vanished before its owner finished: evicted, flushed or lost by a failover. Investigate it. */
    LOST,
    /**
     * The storage failed: an attempt was refused, an ID could not be saved, a completion is not recorded yet, or a claim under which
     * nothing ran could not be released.
     */
    STORAGE_ERROR,
    /** A response was too large to be stored. */
    OVERSIZE
}
