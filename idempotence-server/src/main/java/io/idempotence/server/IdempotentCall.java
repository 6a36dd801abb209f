package io.idempotence.server;

import io.idempotence.IdempotenceId;
import io.idempotence.server.storage.Fingerprint;
import java.util.Objects;

/**
 * One attempt at a logical call, as a transport hands it to {@link Idempotence#claim}.
 *
 * @param id the logical call
 * @param scope whose ID it is, for example the principal; IDs of different scopes never meet (promise P5). Empty if there is but one
 * @param fingerprint what the request asks for
 */
public record IdempotentCall(IdempotenceId id, String scope, Fingerprint fingerprint) {
    /** Refuses null. */
    public IdempotentCall {
        Objects.requireNonNull(id, "id");
        Objects.requireNonNull(scope, "scope");
        Objects.requireNonNull(fingerprint, "fingerprint");
    }
}
