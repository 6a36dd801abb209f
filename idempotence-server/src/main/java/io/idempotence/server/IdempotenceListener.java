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
