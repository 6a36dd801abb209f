package io.idempotence.client;

import io.idempotence.IdempotenceId;
import io.idempotence.http.Refusal;
import java.util.Optional;

/**
 * A refusal by the server half, in place of the operation's response. Retrying does not change it. The exceptions of all clients
 * implement it.
 *
 * <p>{@link Refusal#RESULT_UNAVAILABLE} means that the operation <em>was</em> executed and only its response is not stored. {@link
 * Refusal#OUTCOME_UNKNOWN} of a call with an ID is an {@link OutcomeUnknown} instead.
 */
public interface RequestRefused {
    /**
     * Why the server half refused.
     *
     * @return the refusal
     */
    Refusal refusal();

    /**
     * The ID that every attempt carried.
     *
     * @return the ID, or empty if the call carried none, as with {@link Refusal#KEY_MISSING}
     */
    Optional<IdempotenceId> id();
}
