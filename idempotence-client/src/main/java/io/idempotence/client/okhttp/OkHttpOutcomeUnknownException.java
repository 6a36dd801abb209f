package io.idempotence.client.okhttp;

import io.idempotence.IdempotenceId;
import io.idempotence.client.OutcomeUnknown;
import java.io.IOException;
import java.time.Instant;

/**
 * The unknown outcome of a call of an OkHttp client (promise P7).
 *
 * <p>Make the call again under its {@link #id()}, with {@link io.idempotence.client.IdempotenceScope#resume}. A retry on {@link IOException}
 * around the client makes it again under a new ID, unless it is inside {@link io.idempotence.client.IdempotenceScope#with}.
 */
public final class OkHttpOutcomeUnknownException extends IOException implements OutcomeUnknown {
    private static final long serialVersionUID = 1L;

    private final IdempotenceId id;
    private final int attempts;
    private final Instant firstSentAt;

    OkHttpOutcomeUnknownException(
            String message, IdempotenceId id, int attempts, Instant firstSentAt, Throwable cause) {
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
