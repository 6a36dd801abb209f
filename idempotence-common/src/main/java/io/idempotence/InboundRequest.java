package io.idempotence;

import io.idempotence.internal.FieldDigest;
import io.idempotence.internal.ThreadBound;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The protected request, or message, whose handler runs in this thread. The server half enters it. The client half derives the IDs of the
 * handler's own calls from it, so that a handler that runs again repeats those IDs. The inbound ID itself is never sent on.
 *
 * <p>It applies to the threads in which the handler runs. Other threads have none, nor have tasks that a worker of a fork-join pool runs
 * while it waits, unless the work is carried there with {@code IdempotenceScope.carried} of the client half, or {@link #enter()}.
 *
 * <p>Thread-safe.
 */
public final class InboundRequest {
    private static final ThreadBound<InboundRequest> CURRENT = new ThreadBound<>();

    private final String identity;
    /** How often each call was made. Guarded by this object's lock; null before the first call, which most handlers never make. */
    private @Nullable Map<String, Integer> equalCalls;

    private InboundRequest(String identity) {
        this.identity = identity;
    }

    /**
     * Creates the request of one execution. For integrations: a server half calls it once for each execution.
     *
     * @param identity a text that is the same for every execution of one request, and different for different requests
     */
    public static InboundRequest of(String identity) {
        return new InboundRequest(Objects.requireNonNull(identity, "identity"));
    }

    /** {@return the request whose handler runs in this thread; empty outside of any} */
    public static Optional<InboundRequest> current() {
        return Optional.ofNullable(CURRENT.get());
    }

    /**
     * Makes this the current request of this thread. For integrations.
     *
     * @return restores the previous request; run it in the same thread
     */
    public Runnable enter() {
        return CURRENT.enter(this);
    }

    /**
     * The ID of the next call that this request makes: a SHA-256 over the request, the call, and the number of equal calls before it.
     * Different calls keep their IDs if their order changes.
     *
     * @param client the client's name
     * @param method the client method's name
     * @param target path and query
     * @param body the body, or null for none
     * @return the ID, 43 characters
     */
    public IdempotenceId idOfNextCall(String client, String method, String target, byte @Nullable [] body) {
        String call = text(new FieldDigest()
                .add(identity)
                .add(client)
                .add(method)
                .add(target)
                .add(body == null ? new byte[0] : body));
        return new IdempotenceId(text(new FieldDigest().add(call).add(Integer.toString(nth(call)))));
    }

    private synchronized int nth(String call) {
        if (equalCalls == null) {
            equalCalls = new HashMap<>();
        }
        return equalCalls.merge(call, 1, Integer::sum);
    }

    private static String text(FieldDigest digest) {
        return Base64.getUrlEncoder().withoutPadding().encodeToString(digest.digest());
    }
}
