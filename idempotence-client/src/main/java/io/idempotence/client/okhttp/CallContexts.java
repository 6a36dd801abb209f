package io.idempotence.client.okhttp;

import io.idempotence.client.internal.scope.WeakIdentityMap;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicBoolean;
import okhttp3.Call;
import okhttp3.EventListener;
import okhttp3.Request;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The contexts in which calls were made, because {@code enqueue} runs a call on another thread. OkHttp creates a listener in the thread
 * that makes the call.
 */
final class CallContexts implements EventListener.Factory {
    private static final Logger LOG = LoggerFactory.getLogger(IdempotentOkHttp.class);

    private final EventListener.Factory delegate;
    private final WeakIdentityMap<Call, TrackedCall> calls = new WeakIdentityMap<>();
    private final AtomicBoolean warned = new AtomicBoolean();

    CallContexts(EventListener.Factory delegate) {
        this.delegate = delegate;
    }

    @Override
    public EventListener create(Call call) {
        calls.put(call, new TrackedCall(CallContext.current(call.request())));
        return delegate.create(call);
    }

    /** Returns the call as it was made. An interceptor in front may proceed more than once, so an entry lives as long as its call. */
    TrackedCall of(Call call) {
        TrackedCall tracked = calls.get(call);
        if (tracked != null) {
            return tracked;
        }
        if (warned.compareAndSet(false, true)) {
            LOG.warn("Another event listener was set after IdempotentOkHttp.install: calls that are enqueued inside an"
                    + " IdempotenceScope will NOT carry its ID; call IdempotentOkHttp.install(builder) last");
        }
        TrackedCall unknown = new TrackedCall(CallContext.NONE);
        calls.put(call, unknown);
        return unknown;
    }

    /**
     * A {@link Call} with the context in which it was made and the state of its requests.
     *
     * <p>An interceptor in front may proceed more than once. With the same method and path that is the same logical call, sent again, whatever
     * the host and the query. Any other request, for example for a token, is a call of its own.
     */
    static final class TrackedCall {
        private final CallContext context;
        private final ConcurrentMap<String, CallMemory> memories = new ConcurrentHashMap<>();

        TrackedCall(CallContext context) {
            this.context = context;
        }

        CallContext context() {
            return context;
        }

        /** @param key the lines of the request's own ID; empty if it has none */
        CallMemory memory(Request request, List<String> key) {
            String name = request.method() + " " + request.url().encodedPath() + " " + String.join("\n", key);
            return memories.computeIfAbsent(name, absent -> new CallMemory());
        }
    }
}
