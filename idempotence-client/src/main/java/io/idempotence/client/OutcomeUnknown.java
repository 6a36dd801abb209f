package io.idempotence.client;

import io.idempotence.IdempotenceId;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * The unknown outcome of a logical call: the operation may have been executed (promise P7). The exceptions of all clients implement it.
 *
 * <p>A call that carries an ID ends this way in three cases:
 *
 * <ul>
 *   <li>An attempt ended without a trustworthy response: an I/O failure after connecting, 502, 504, or an execution still in progress. No
 *       later response settled it before the attempts, the deadline or the budget ended, or the call was cancelled.
 *   <li>The server half responded {@code outcome-unknown}.
 *   <li>A layer around the attempts, such as a circuit breaker, prevented a call whose ID may already have been executed.
 * </ul>
 *
 * <p>Keep the {@link #id()}. Make the same call again under it, with {@link IdempotenceScope#resume} or the header argument. It then gets
 * the first call's result, or is executed once. That holds as long as the server half remembers the ID (its retention, 24 hours by
 * default). Afterwards the call would be executed as a new one, so check the business data instead. If the server's process died during the
 * execution, the outcome stays unknown until an operator or a recovery rule at the server has resolved it.
 */
public interface OutcomeUnknown {
    /** {@return the ID that every attempt carried} */
    IdempotenceId id();

    /**
     * When the first request of the call was sent, by this machine's clock. Keep it with the ID: the server half may forget the ID one
     * retention later. For a resumed call it is the time passed to {@link IdempotenceScope#resume}, so that resuming again does not change
     * it.
     */
    Instant firstSentAt();

    /**
     * How many attempts were made. Polls of an execution in progress count as part of their attempt.
     *
     * @return at least 1. 0 if a layer above the client half, such as an open circuit breaker, prevented a call that is resumed, or
     *     whose {@link IdempotenceScope} has an earlier call in doubt
     */
    int attempts();

    /** {@return the failure that ended the last attempt, which is the cause of the exception; null if there was none} */
    default @Nullable Throwable lastCause() {
        return this instanceof Throwable thrown ? thrown.getCause() : null;
    }
}
