package io.idempotence.spring.client;

import io.idempotence.IdempotenceId;
import io.idempotence.client.RequestRefused;
import io.idempotence.http.Refusal;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.springframework.web.client.RestClientException;

/**
 * A refusal of the server half that ended a call.
 *
 * <p>Status handlers do not see it, so a 409 or 422 of the framework is never taken for one of the operation. {@link
 * Refusal#RESULT_UNAVAILABLE} means that the operation <em>was</em> executed and only its response was not stored. {@link
 * Refusal#STORAGE_UNAVAILABLE} and {@link Refusal#OVERLOADED} are retried, and end here when attempts, deadline or budget are over. {@link
 * Refusal#OUTCOME_UNKNOWN} of a call with an ID is a {@link RestOutcomeUnknownException} instead.
 */
public final class RestRequestRefusedException extends RestClientException implements RequestRefused {
    private static final long serialVersionUID = 1L;

    private final Refusal refusal;
    private final @Nullable IdempotenceId id;

    RestRequestRefusedException(Refusal refusal, @Nullable IdempotenceId id, Throwable cause) {
        super(refusal.code() + ": " + refusal.title(), cause);
        this.refusal = refusal;
        this.id = id;
    }

    @Override
    public Refusal refusal() {
        return refusal;
    }

    @Override
    public Optional<IdempotenceId> id() {
        return Optional.ofNullable(id);
    }
}
