package io.idempotence.client.internal.call;

import static io.idempotence.client.IdempotenceClientAttemptEvent.Outcome.FINAL;
import static io.idempotence.client.IdempotenceClientAttemptEvent.Outcome.IN_PROGRESS;
import static io.idempotence.client.IdempotenceClientAttemptEvent.Outcome.NOT_SENT;
import static io.idempotence.client.IdempotenceClientAttemptEvent.Outcome.REFUSED;
import static io.idempotence.client.IdempotenceClientAttemptEvent.Outcome.REPLAYED;
import static io.idempotence.client.IdempotenceClientAttemptEvent.Outcome.RETRYABLE;
import static io.idempotence.client.IdempotenceClientAttemptEvent.Outcome.SUCCEEDED;
import static io.idempotence.client.IdempotenceClientAttemptEvent.Outcome.UNDETERMINED;

import io.idempotence.client.IdempotenceClientAttemptEvent.Outcome;
import io.idempotence.client.internal.http.IoFailures;
import io.idempotence.client.internal.http.Observation;
import io.idempotence.http.Refusal;
import java.io.IOException;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The end of one request of a call.
 *
 * @param outcome never {@link Outcome#REPLAYED}, which is only for listeners
 * @param seen what the HTTP client observed
 * @param value what the layers above the HTTP client returned
 * @param thrown what they threw, or null if they returned
 */
record RequestEnd(
        Outcome outcome,
        Observation seen,
        @Nullable Object value,
        @Nullable Throwable thrown) {
    /** Statuses that logins, gateways and containers return before the operation is called, even if it was executed before. */
    private static final Set<Integer> OFTEN_BEFORE_THE_OPERATION = Set.of(
            301, 302, 303, 307, 308, 401, 403, 404, 405, 407, 408, 411, 413, 414, 415, 421, 425, 429, 431, 451, 500,
            503);

    /**
     * The end of a request. The first line that applies counts:
     *
     * <pre>
     * seen                                                         outcome
     * certificate not trusted, malformed address or method         FINAL
     * no connection, and no earlier request by the same client     NOT_SENT
     * any other I/O failure before a status line                   UNDETERMINED
     * request sent, no response received                           UNDETERMINED
     * no request, a value                                          SUCCEEDED
     * no request, an exception                                     FINAL
     * refusal in-progress, and the request must not be sent again  REFUSED
     * refusal in-progress / other / unknown                        IN_PROGRESS / REFUSED / FINAL
     * refusal storage-unavailable, overloaded                      RETRYABLE
     * 2xx, returned a value                                        SUCCEEDED
     * 2xx, threw because the body was interrupted                  UNDETERMINED
     * 2xx, threw for another reason                                FINAL
     * Idempotent-Replayed: true                                    FINAL
     * 409, and an earlier attempt is in doubt                      UNDETERMINED
     * a status that is retried                                     RETRYABLE
     * any other status                                             FINAL
     * </pre>
     *
     * @param seen what the HTTP client saw
     * @param value what the layers above it made of it, if they returned
     * @param thrown what they made of it, or null if they returned
     * @param statuses the statuses to retry
     * @param inDoubt an earlier attempt may have been executed, so that a 409 may be a refusal whose marker was lost on its way
     */
    static RequestEnd of(
            Observation seen,
            @Nullable Object value,
            @Nullable Throwable thrown,
            Set<Integer> statuses,
            boolean inDoubt) {
        return new RequestEnd(outcome(seen, thrown, statuses, inDoubt), seen, value, thrown);
    }

    private static Outcome outcome(
            Observation seen, @Nullable Throwable thrown, Set<Integer> statuses, boolean inDoubt) {
        IOException failure = seen.failure();
        if (failure != null) {
            if (IoFailures.isHopeless(failure)) {
                return FINAL;
            }
            return seen.isNotSent() && !seen.hasEarlierDoubt() ? NOT_SENT : UNDETERMINED;
        }
        if (seen.isOpen()) {
            return UNDETERMINED;
        }
        int status = seen.status();
        if (status == 0) {
            return thrown == null ? SUCCEEDED : FINAL;
        }
        if (seen.namesRefusal()) {
            return ofRefusal(seen.refusal(), seen.mayBeSentAgain());
        }
        if (seen.isSuccess()) {
            if (thrown == null) {
                return SUCCEEDED;
            }
            return seen.bodyFailure() != null ? UNDETERMINED : FINAL;
        }
        if (seen.isReplayed()) {
            return FINAL;
        }
        if (status == 409 && (inDoubt || seen.hasEarlierDoubt())) {
            return UNDETERMINED;
        }
        return statuses.contains(status) ? RETRYABLE : FINAL;
    }

    private static Outcome ofRefusal(Optional<Refusal> refusal, boolean mayBeSentAgain) {
        if (refusal.isEmpty()) {
            return FINAL;
        }
        return switch (refusal.get()) {
            case IN_PROGRESS -> mayBeSentAgain ? IN_PROGRESS : REFUSED;
            case STORAGE_UNAVAILABLE, OVERLOADED -> RETRYABLE;
            default -> REFUSED;
        };
    }

    /** The outcome for listeners. */
    Outcome reported() {
        return seen.isReplayed() && (outcome == SUCCEEDED || outcome == FINAL) ? REPLAYED : outcome;
    }

    /** Whether the operation may have been executed without the caller knowing. */
    boolean leavesDoubt() {
        return outcome == UNDETERMINED
                || seen.refusal().orElse(null) == Refusal.IN_PROGRESS
                || seen.hasEarlierDoubt()
                || (seen.hasEarlierFailure() && leavesFailureOpen())
                || seen.isGatewayError();
    }

    /** Whether this end shows nothing about the operation, so that an earlier failure of its handler remains the last thing known. */
    boolean leavesFailureOpen() {
        return !settles() && !seen.isOfAFailedHandler();
    }

    /**
     * Whether this end is the outcome of the operation, including earlier attempts. The outcome of an earlier attempt stays open after a
     * response that was given before the server half checked the ID: a malformed ID, an unknown refusal, a status that a gateway or a login
     * may return, or an error made by code on the client side. It also stays open after the refusal key-reused: the attempts differed, and
     * the earlier one may have been executed.
     */
    boolean settles() {
        if (outcome == SUCCEEDED) {
            return true;
        }
        if (outcome == REFUSED) {
            return seen.refusal().map(r -> r == Refusal.RESULT_UNAVAILABLE).orElse(false);
        }
        int status = seen.status();
        return outcome == FINAL
                && status != 0
                && !seen.namesRefusal()
                && !seen.isRespondedHere()
                && !seen.isRedirectNotFollowed()
                && !seen.isGatewayError()
                && (seen.isReplayed() || !OFTEN_BEFORE_THE_OPERATION.contains(status));
    }
}
