package io.idempotence.client.okhttp;

import io.idempotence.client.internal.scope.ScopeHistory;
import java.io.IOException;
import okhttp3.RequestBody;
import org.jspecify.annotations.Nullable;

/**
 * What a logical call keeps while its {@link okhttp3.Call} lives, however often an interceptor in front proceeds: ID, doubt and
 * body. It is remembered by the call and so must not refer to it.
 */
final class CallMemory {
    private final ScopeHistory history = ScopeHistory.ofOneCall();
    private @Nullable RepeatableBody body;

    /** Keeps the ID and the doubt of the call where no scope does. */
    ScopeHistory history() {
        return history;
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
