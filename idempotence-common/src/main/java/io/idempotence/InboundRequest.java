package io.idempotence;

import io.idempotence.internal.FieldDigest;
import java.util.Base64;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * The protected request, or message, whose handler runs in this thread. The server half opens it; the client half derives
 * from it the IDs of the calls that the handler makes, so that a handler that runs again repeats the IDs of its calls. The ID
 * that came in is never sent on itself.
 *
 * <p>It holds for the threads in which the handler runs. In other threads there is none, unless the work is carried there: {@code
 * IdempotenceScope.carried} of the client half, or {@link #enter()}.
 *
 * <p>Thread-safe.
 */
public final class InboundRequest {
    private static final ThreadLocal<@Nullable InboundRequest> CURRENT = new ThreadLocal<>();

    private final String identity;
    private final ConcurrentMap<String, AtomicInteger> equalCalls = new ConcurrentHashMap<>();

    private InboundRequest(String identity) {
        this.identity = identity;
    }

    /**
     * For integrations: a server half calls it once for each execution.
     *
     * @param identity the same text for the same request however often it is executed, and another for every other
     * @return the request
     */
    public static InboundRequest of(String identity) {
        return new InboundRequest(Objects.requireNonNull(identity, "identity"));
    }

    /**
     * The request whose handler runs in this thread.
     *
     * @return the request, or empty outside of any
     */
    public static Optional<InboundRequest> current() {
        return Optional.ofNullable(CURRENT.get());
    }

    /**
     * Makes this the current request of this thread. For integrations.
     *
     * @return puts back what was there before; run it in the same thread
     */
    public Runnable enter() {
        InboundRequest before = CURRENT.get();
        CURRENT.set(this);
        // Not removed: the place is taken again by the thread's next request, and costs a look through the others' to
        // remove.
        return () -> CURRENT.set(before);
    }

    /**
     * The ID of the next call that this request makes: a SHA-256 over the request, the call, and how many equal calls came
     * before it. Calls that are made in another order keep their IDs unless they are equal.
     *
     * @param client names the target
     * @param method names the client method
     * @param target path and query
     * @param body what is sent, or null for nothing
     * @return the ID, 43 characters
     */
    public IdempotenceId idOfNextCall(String client, String method, String target, byte @Nullable [] body) {
        String call = text(new FieldDigest()
                .add(identity)
                .add(client)
                .add(method)
                .add(target)
                .add(body == null ? new byte[0] : body));
        int n = equalCalls.computeIfAbsent(call, key -> new AtomicInteger()).incrementAndGet();
        return new IdempotenceId(text(new FieldDigest().add(call).add(Integer.toString(n))));
    }

    private static String text(FieldDigest digest) {
        return Base64.getUrlEncoder().withoutPadding().encodeToString(digest.digest());
    }
}
