package io.idempotence.client.okhttp;

import io.idempotence.IdempotenceId;
import io.idempotence.client.RequestRefused;
import io.idempotence.http.Refusal;
import java.io.IOException;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** A refusal by the server half that ended a call of an OkHttp client. */
public final class OkHttpRequestRefusedException extends IOException implements RequestRefused {
    private static final long serialVersionUID = 1L;

    private final Refusal refusal;
    private final @Nullable IdempotenceId id;

    OkHttpRequestRefusedException(Refusal refusal, @Nullable IdempotenceId id, Throwable cause) {
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
