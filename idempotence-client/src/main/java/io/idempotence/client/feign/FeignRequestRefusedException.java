package io.idempotence.client.feign;

import feign.FeignException;
import feign.Request;
import io.idempotence.IdempotenceId;
import io.idempotence.client.RequestRefused;
import io.idempotence.http.Refusal;
import java.util.Collection;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A refusal by the server half that ended a call of a Feign client. The cause is the exception that the client's error decoder made of the
 * response.
 */
public final class FeignRequestRefusedException extends FeignException implements RequestRefused {
    private static final long serialVersionUID = 1L;

    private final Refusal refusal;
    private final @Nullable IdempotenceId id;

    FeignRequestRefusedException(
            Refusal refusal,
            int status,
            @Nullable IdempotenceId id,
            Request request,
            Throwable cause,
            byte @Nullable [] body,
            Map<String, Collection<String>> headers) {
        super(status, refusal.code() + ": " + refusal.title(), request, cause, body, headers);
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
