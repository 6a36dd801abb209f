package io.idempotence.client;

import io.idempotence.IdempotenceId;
import java.time.Duration;
import java.util.Optional;

/**
 * The end of one logical call.
 *
 * @param client the client's name, for Feign {@code Target.name()}
 * @param method the client method, for example {@code Orders#create(Order)}; one of few values
 * @param result the result for the caller
 * @param id the call's ID, or empty if the call carried none. Not for metrics or logs above debug
 * @param attempts the number of attempts: at least 1, but 0 for a call in doubt, such as a resumed one, that a layer above the client half
 *     prevented
 * @param requests the requests that were passed to the HTTP client, polls of an execution in progress included; 0 if every attempt failed
 *     before sending. Repetitions by the client itself, and redirects, are not counted
 * @param duration from the start of the call to its end, waits included
 * @param budgetLeft the tokens left in the client's {@link RetryBudget} when the call ended
 */
public record IdempotenceClientEvent(
        String client,
        String method,
        Result result,
        Optional<IdempotenceId> id,
        int attempts,
        int requests,
        Duration duration,
        int budgetLeft) {
    /** The result of a call for its caller. */
    public enum Result {
        /** A first response of the operation, 2xx. */
        SUCCEEDED,

        /** A stored response (promise P4). */
        REPLAYED,

        /** A refusal of the server half. */
        REFUSED,

        /** An error status that is not a stored response, or an exception of the HTTP client or of the caller's own code. */
        FAILED,

        /** An unknown outcome (promise P7). */
        UNKNOWN
    }

    /** A text for logs, without the ID. */
    @Override
    public String toString() {
        return result + " " + client + " " + method + ", attempts " + attempts + ", requests " + requests + ", "
                + duration.toMillis() + " ms";
    }
}
