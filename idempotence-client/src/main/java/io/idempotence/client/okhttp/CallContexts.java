package io.idempotence.client.okhttp;

import io.idempotence.client.internal.scope.WeakIdentityMap;
import java.util.concurrent.atomic.AtomicBoolean;
import okhttp3.Call;
import okhttp3.EventListener;
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
}
