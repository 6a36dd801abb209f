package io.idempotence.client.okhttp;

import io.idempotence.client.IdempotenceScope;
import java.io.IOException;
import okhttp3.RequestBody;
import org.jspecify.annotations.Nullable;

/**
 * What a logical call keeps while its {@link okhttp3.Call} lives, however often an interceptor in front proceeds: ID, doubt and
 * body. It is remembered by the call and so must not refer to it.
 */
final class CallIdentity {
    private final IdempotenceScope scope = scopeOfNoThread();
    private @Nullable RepeatableBody body;

    private static IdempotenceScope scopeOfNoThread() {
        return IdempotenceScope.outside(() -> IdempotenceScope.saving(
                id -> {}, () -> IdempotenceScope.current().orElseThrow()));
    }

    /** Gives the call its ID where nobody else does, and keeps its doubt. */
    IdempotenceScope scope() {
        return scope;
    }

    /**
     * The body, as far as it was captured if it is the one that was sent before.
     *
     * @throws IOException if {@code given} cannot tell its length
     */
    RepeatableBody body(RequestBody given) throws IOException {
        RepeatableBody known = body;
        return known != null && known.isOf(given) ? known : new RepeatableBody(given);
    }

    /** A body that was never written is not kept: it may refer to its call. */
    void keep(@Nullable RepeatableBody sent) {
        if (sent != null && sent.isDetached()) {
            body = sent;
        }
    }
}
