package io.idempotence.spring.client;

import io.idempotence.IdempotenceId;
import io.idempotence.client.OutcomeUnknown;
import java.io.IOException;
import java.time.Instant;
import org.springframework.web.client.ResourceAccessException;

/**
 * The unknown outcome of a call through {@code RestClient}, an HTTP service client or {@code RestTemplate}: the operation may have been
 * executed (promise P7).
 *
 * <p>Thrown for calls that carry an ID: an attempt was sent and ended without a trustworthy response (an I/O failure after connecting, 502,
 * 504, an execution still in progress), and no later response settled it before the attempts, the deadline or the budget ended. Also thrown
 * if the server half itself responded {@code outcome-unknown}.
 *
 * <p>Keep the {@link #id()} and make the call again under it: {@link io.idempotence.client.IdempotenceScope#resume}.
 */
public final class RestOutcomeUnknownException extends ResourceAccessException implements OutcomeUnknown {
    private static final long serialVersionUID = 1L;

    private final IdempotenceId id;
    private final int attempts;
    private final Instant firstSentAt;

    RestOutcomeUnknownException(
            String message, IdempotenceId id, int attempts, Instant firstSentAt, IOException cause) {
        super(message, cause);
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
