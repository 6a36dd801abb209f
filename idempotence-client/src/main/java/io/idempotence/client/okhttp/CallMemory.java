package io.idempotence.client.okhttp;

import io.idempotence.client.internal.scope.ScopeHistory;
import java.io.IOException;
import okhttp3.HttpUrl;
import okhttp3.Request;
import okhttp3.RequestBody;
import org.jspecify.annotations.Nullable;

/**
 * The state of a logical call for the lifetime of its {@link okhttp3.Call}, however often an interceptor in front proceeds: ID, doubt and
 * body. It is reachable from the call, so it must not refer to it.
 */
final class CallMemory {
    private final ScopeHistory history = ScopeHistory.ofOneCall();
    private @Nullable RepeatableBody body;
    private @Nullable String name;

    /** The ID and the doubt of the call if it is outside of a scope. */
    ScopeHistory history() {
        return history;
    }

    /** The name of the call in its scope: the method and URL of its first request, without the query. */
    String name(Request first) {
        String known = name;
        if (known == null) {
            HttpUrl.Builder url = first.url().newBuilder().username("").password("");
            known = first.method() + " " + url.query(null).fragment(null).build();
            name = known;
        }
        return known;
    }

    /**
     * Returns the body, with what was captured if it is the one that was sent before.
     *
     * @throws IOException if {@code given} cannot return its length
     */
    RepeatableBody body(RequestBody given) throws IOException {
        RepeatableBody known = body;
        return known != null && known.isOf(given) ? known : new RepeatableBody(given);
    }

    /** Keeps a body for the next attempt. One that was never written is not kept, because it may refer to its call. */
    void keep(@Nullable RepeatableBody sent) {
        if (sent != null && sent.isDetached()) {
            body = sent;
        }
    }
}
