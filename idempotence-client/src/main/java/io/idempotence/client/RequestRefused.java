package io.idempotence.client;

import io.idempotence.IdempotenceId;
import io.idempotence.http.Refusal;
import java.util.Optional;

/**
 * The server half answered in place of the operation, and asking again does not change it.
 *
 * <p>Implemented by the exceptions that say so. {@link Refusal#RESULT_UNAVAILABLE} means that the operation <em>was</em> executed and
 * only its response was not kept. {@link Refusal#OUTCOME_UNKNOWN} of a call with an ID is an {@link OutcomeUnknown} instead.
 */
public interface RequestRefused {
    /**
     * Why.
     *
     * @return the refusal
     */
    Refusal refusal();

    /**
     * The ID every attempt carried.
     *
     * @return the ID, or empty if the call carried none, as with {@link Refusal#KEY_MISSING}
     */
    Optional<IdempotenceId> id();
}
