package io.idempotence.client.feign;

import feign.FeignException;
import feign.Request;
import io.idempotence.IdempotenceId;
import io.idempotence.client.OutcomeUnknown;
import java.time.Instant;

/**
 * The unknown outcome of a call: the operation may have been executed (promise P7).
 *
 * <p>Thrown for calls that carry an ID, in three cases. An attempt was sent and ended without a trustworthy response (an I/O failure after
 * connecting, 502, 504, an execution still in progress), and no later response settled it before attempts, deadline or budget ended. Or the
 * server half itself responded {@code outcome-unknown}. Or a layer around the attempts, such as a circuit breaker, refused to make such a
 * call again.
 *
 * <p>It is a {@link FeignException} and not a {@link feign.RetryableException}: a retry above the client would make another call, with
 * another ID. Keep the {@link #id()} and make the call again under it: {@link io.idempotence.client.IdempotenceScope#resume}.
 */
public final class FeignOutcomeUnknownException extends FeignException implements OutcomeUnknown {
    private static final long serialVersionUID = 1L;

    private final IdempotenceId id;
    private final int attempts;
    private final Instant firstSentAt;

    FeignOutcomeUnknownException(
            int status,
            String message,
            IdempotenceId id,
            int attempts,
            Instant firstSentAt,
            Request request,
            Throwable cause) {
        super(status, message, request, cause);
        this.id = id;
        this.attempts = attempts;
        this.firstSentAt = firstSentAt;
    }

    @Override
    public IdempotenceId id() {
        return id;
    }

    @Override
    public Instant firstSentAt() {
        return firstSentAt;
    }

    @Override
    public int attempts() {
        return attempts;
    }
}
