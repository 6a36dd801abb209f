package io.idempotence.server;

import io.idempotence.IdempotenceId;

/**
 * Is told what the server half does. Called on the thread that does it: must be fast, thread-safe, and not throw; what it throws
 * is logged and otherwise ignored.
 */
@FunctionalInterface
public interface IdempotenceListener {
    /**
     * Something happened.
     *
     * @param event what
     * @param id to which ID; do not use it as a metric's label
     */
    void onEvent(IdempotenceEvent event, IdempotenceId id);

    /** What is known of the storage. */
    enum StorageState {
        /** It answers. So it counts from the beginning. */
        AVAILABLE,
        /** It has failed repeatedly: attempts are refused without asking it, until a probe succeeds. */
        UNAVAILABLE
    }

    /**
     * The circuit breaker in front of the storage has opened, or a probe has found that the storage is back. Does nothing unless
     * overridden.
     *
     * @param state the new state
     */
    default void onStorage(StorageState state) {}

    /**
     * An ID was released: its next attempt runs. {@link IdempotenceEvent#RELEASED} is told as well. Does nothing unless overridden.
     *
     * @param id which ID; do not use it as a metric's label
     * @param reason why
     */
    default void onReleased(IdempotenceId id, ReleaseReason reason) {}

    /** What an attempt came to. */
    enum Outcome {
        /** It ran. */
        RUN,
        /** It got the stored answer of an earlier one. */
        REPLAY,
        /** It was refused, or had to wait. */
        REFUSE
    }

    /**
     * The framework has held up one attempt at a request or an {@code execute}: for its claim, and if it ran also for the record
     * of its end. The time of the handler, of waiting for another attempt and of writes in the background is not in it. Does
     * nothing unless overridden.
     *
     * @param outcome what the attempt came to
     * @param nanos for how long
     */
    default void onOverhead(Outcome outcome, long nanos) {}
}
