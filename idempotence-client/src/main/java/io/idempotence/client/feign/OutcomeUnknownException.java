package io.idempotence.client.feign;

import feign.Request;
import feign.RetryableException;
import io.idempotence.IdempotenceId;
import io.idempotence.client.OutcomeUnknown;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * It is not known whether the operation was carried out (promise P7).
 *
 * <p>Thrown for calls that carried an ID, when an attempt was sent without a trustworthy end (an I/O failure after
 * connecting, 502, 504, an execution still in progress) and no later answer settled it before attempts, deadline or budget
 * ended; or when the server half itself answered {@code outcome-unknown}. It is a {@link RetryableException}, as the exception
 * it takes the place of mostly is, so existing {@code catch} blocks and fallbacks keep working. Keep the {@link #id()} and
 * make the call again under it: {@link io.idempotence.client.IdempotenceScope#resume}.
 */
public final class OutcomeUnknownException extends RetryableException implements OutcomeUnknown {
    private static final long serialVersionUID = 1L;

    private final String idValue;
    private final int attempts;
    private final Instant firstSentAt;

    OutcomeUnknownException(
            int status,
            String method,
            IdempotenceId id,
            int attempts,
            Instant firstSentAt,
            boolean leftWithoutId,
            Request request,
            Throwable cause) {
        super(
                status,
                "it is not known whether " + method + " was carried out, after " + attempts
                        + (attempts == 1 ? " attempt" : " attempts")
                        + (leftWithoutId
                                ? "; a redirect took it to another origin, which does not know its ID: do not call again, look into"
                                        + " the business data"
                                : "; call again with the same ID"),
                request.httpMethod(),
                cause,
                (Long) null,
                request);
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
