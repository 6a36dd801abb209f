package io.idempotence.server;

/**
 * Something the server half did that the people who run it may want to count. An attempt that waited for another one is {@link
 * #IN_PROGRESS} when it comes and, unless it is told to ask again, what its answer is when it gets that.
 */
public enum IdempotenceEvent {
    /** A first attempt, or one after a release, got the claim. */
    CLAIMED,
    /**
     * An attempt met an operation that is completed: the stored answer was given again, or there is none (result-unavailable), or it
     * cannot be read, and {@link #STORAGE_ERROR} follows.
     */
    REPLAYED,
    /**
     * An ID was released: its next attempt runs. {@link IdempotenceListener#onReleased} is told why. Look into it where a handler can
     * fail after it took effect.
     */
    RELEASED,
    /** An attempt met one that still runs. */
    IN_PROGRESS,
    /** An ID came with another request. */
    MISMATCH,
    /** An abandoned claim was taken over; the operation may run a second time, as its policy allows. */
    TAKE_OVER,
    /**
     * An attempt was refused because the outcome is not known, or an execution was marked so, or its end could not be written and
     * is given up. Look into it.
     */
    UNKNOWN,
    /** A late owner tried to finish and was stopped. Two executions overlapped: look into it. */
    FENCED,
    /** A record had vanished before its owner finished: evicted, flushed or lost by a failover. Look into it. */
    LOST,
    /**
     * The storage failed: an attempt was refused, an ID could not be saved, an end is not recorded yet, or a claim under which
     * nothing ran could not be given back.
     */
    STORAGE_ERROR,
    /** An answer was too large to be kept. */
    OVERSIZE
}
