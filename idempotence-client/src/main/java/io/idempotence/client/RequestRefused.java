package io.idempotence.client;

import io.idempotence.IdempotenceId;
import io.idempotence.http.Refusal;
import java.util.Optional;

/**
 * A refusal by the server half that ended a call, in place of the operation's response. The exceptions of all clients implement it.
 * Because it is thrown, a 409 or 422 of the server half is never taken for one of the operation.
 *
 * <p>If the refusal is {@linkplain Refusal#retryable() retryable}, the call ended because its attempts, deadline or budget were used up:
 * make the call again later under the same ID. A retry does not change any other refusal.
 *
 * <p>{@link Refusal#RESULT_UNAVAILABLE} means that the operation <em>was</em> executed and only its response is not stored. {@link
 * Refusal#IN_PROGRESS} and {@link Refusal#OUTCOME_UNKNOWN} end in an {@link OutcomeUnknown} instead.
 */
public interface RequestRefused {
    /** {@return why the server half refused} */
    Refusal refusal();

    /** {@return the ID that every attempt carried; never empty, because a call without an ID does not end in this exception} */
    Optional<IdempotenceId> id();
}
