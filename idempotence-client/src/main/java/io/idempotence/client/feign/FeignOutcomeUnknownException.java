package io.idempotence.client.feign;

import feign.FeignException;
import feign.Request;
import io.idempotence.IdempotenceId;
import io.idempotence.client.OutcomeUnknown;
import java.time.Instant;

/**
 * The unknown outcome of a call of a Feign client (promise P7).
 *
 * <p>It is a {@link FeignException} and not a {@link feign.RetryableException}: a retry above the client would make another call, with
 * another ID. Make the call again under its {@link #id()}, with {@link io.idempotence.client.IdempotenceScope#resume}.
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
