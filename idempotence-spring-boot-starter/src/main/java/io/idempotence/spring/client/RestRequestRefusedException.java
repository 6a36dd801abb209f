package io.idempotence.spring.client;

import io.idempotence.IdempotenceId;
import io.idempotence.client.RequestRefused;
import io.idempotence.http.Refusal;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.springframework.web.client.RestClientException;

/**
 * A refusal by the server half that ended a call through {@code RestClient}, an HTTP service client or {@code RestTemplate}. Status handlers
 * do not see it.
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
