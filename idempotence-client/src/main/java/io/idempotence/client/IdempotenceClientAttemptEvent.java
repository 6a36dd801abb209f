package io.idempotence.client;

import io.idempotence.IdempotenceId;
import java.time.Duration;
import java.util.Optional;
import java.util.OptionalInt;

/**
 * The end of one attempt of a logical call.
 *
 * @param client the client's name, for Feign {@code Target.name()}
 * @param method the client method, for example {@code Orders#create(Order)}; one of few values
 * @param id the call's ID, or empty if the call carries none. Not for metrics or logs above debug
 * @param number the number of the attempt in its call, from 1
 * @param outcome the outcome
 * @param status the status of the response, or empty if there was none
 * @param requests the requests that were passed to the HTTP client: one, and one more for each poll; 0 if making the request failed.
 *     Repetitions by the client itself, redirects, and requests that interceptors make of their own are not counted
 * @param polls how many times this attempt was sent again because an earlier attempt was still running
 * @param waited the time that this attempt spent waiting for an earlier attempt, at most {@code duration}: its polls and the pauses between
 *     them, including the time for which the server half held a request. If its last request got a stored response, or was refused because
 *     the earlier attempt was still running, the whole attempt counts. Zero if it met no earlier attempt
 * @param duration from the beginning of the attempt to its end, waits for an earlier attempt included
 * @param waitBeforeNext the wait before the next attempt, or empty if this was the last one
 */
public record IdempotenceClientAttemptEvent(
        String client,
        String method,
        Optional<IdempotenceId> id,
        int number,
        Outcome outcome,
        OptionalInt status,
        int requests,
        int polls,
        Duration waited,
        Duration duration,
        Optional<Duration> waitBeforeNext) {
    /** A text for logs, without the ID. */
    @Override
    public String toString() {
        return outcome + " " + client + " " + method + ", attempt " + number
                + (status.isEmpty() ? "" : ", status " + status.getAsInt()) + ", requests " + requests + ", "
                + duration.toMillis() + " ms"
                + waitBeforeNext
                        .map(wait -> ", the next one in " + wait.toMillis() + " ms")
                        .orElse("");
    }

    /** The outcome of one attempt of a logical call. */
    public enum Outcome {
        /** A first response, 2xx, that was read; or a value that needed no request. */
        SUCCEEDED,

        /** A stored response, including a stored failure (promise P4). */
        REPLAYED,

        /**
         * No connection, or the HTTP client rejected the request: the request certainly was not sent, and may be retried even without an ID.
         */
        NOT_SENT,

        /** Sent, with an unknown outcome: may be retried only with an ID. */
        UNDETERMINED,

        /** A status that a retry may change. */
        RETRYABLE,

        /** An earlier attempt was still running when this attempt ended. */
        IN_PROGRESS,

        /** Another refusal of the server half. */
        REFUSED,

        /** A response that a retry would not change, or a failure on the client side. */
        FINAL
    }
}
