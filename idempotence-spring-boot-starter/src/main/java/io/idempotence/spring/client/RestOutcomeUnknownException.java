package io.idempotence.spring.client;

import io.idempotence.IdempotenceId;
import io.idempotence.client.OutcomeUnknown;
import java.io.IOException;
import java.time.Instant;
import org.springframework.web.client.ResourceAccessException;

/**
 * The unknown outcome of a call through {@code RestClient}, an HTTP service client or {@code RestTemplate} (promise P7).
 *
 * <p>Make the call again under its {@link #id()}, with {@link io.idempotence.client.IdempotenceScope#resume}.
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
