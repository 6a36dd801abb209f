package io.idempotence.client.okhttp;

import io.idempotence.client.retry.WeakIdentityMap;
import java.util.concurrent.atomic.AtomicBoolean;
import okhttp3.Call;
import okhttp3.EventListener;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Who made each call: {@code enqueue} runs it on another thread. OkHttp asks for a listener where a call is made. */
final class Callers implements EventListener.Factory {
    private static final Logger LOG = LoggerFactory.getLogger(IdempotentOkHttp.class);

    private final EventListener.Factory delegate;
    private final WeakIdentityMap<Call, Caller> callers = new WeakIdentityMap<>();
    private final AtomicBoolean told = new AtomicBoolean();

    Callers(EventListener.Factory delegate) {
        this.delegate = delegate;
    }

    @Override
    public EventListener create(Call call) {
        callers.put(call, Caller.current(call.request()));
        return delegate.create(call);
    }

    /**
     * Of this thread first: a call may be made here and executed there. An interceptor above may have the call carried out more
     * than once, so who made it is known as long as the call is.
     */
    Caller of(Call call) {
        Caller made = callers.get(call);
        if (made == null && told.compareAndSet(false, true)) {
            LOG.warn("Another event listener was set after IdempotentOkHttp.install: calls that are enqueued inside an"
                    + " IdempotenceScope will NOT carry its ID; call IdempotentOkHttp.install(builder) last");
        }
        Caller here = Caller.current(call.request());
        return made == null ? here : here.or(made);
    }
}
