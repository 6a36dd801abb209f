package io.idempotence.client.okhttp;

import io.idempotence.IdempotenceId;
import io.idempotence.client.OutcomeUnknown;
import java.io.IOException;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * It is not known whether the operation was carried out (promise P7).
 *
 * <p>Thrown for calls that carried an ID, when an attempt was sent without a trustworthy end (an I/O failure after
 * connecting, 502, 504, an execution still in progress) and no later answer settled it before attempts, deadline or budget
 * ended or the call was cancelled; or when the server half itself answered {@code outcome-unknown}. Keep the {@link #id()} and
 * make the call again under it: {@link io.idempotence.client.IdempotenceScope#resume}.
 */
public final class OutcomeUnknownException extends IOException implements OutcomeUnknown {
    private static final long serialVersionUID = 1L;

    private final String idValue;
    private final int attempts;
    private final Instant firstSentAt;

    OutcomeUnknownException(String message, IdempotenceId id, int attempts, Instant firstSentAt, Throwable cause) {
        super(message, cause);
        this.idValue = id.value();
        this.attempts = attempts;
        this.firstSentAt = firstSentAt;
    }

    @Override
    public IdempotenceId id() {
        return new IdempotenceId(idValue);
    }

    @Override
    public Instant firstSentAt() {
        return firstSentAt;
    }

    @Override
    public int attempts() {
        return attempts;
    }

    @Override
    public @Nullable Throwable lastCause() {
        return getCause();
    }
}
