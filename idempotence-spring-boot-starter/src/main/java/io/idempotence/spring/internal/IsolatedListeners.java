package io.idempotence.spring.internal;

import java.util.List;
import java.util.function.Consumer;
import org.slf4j.Logger;

/** The calls of an application's listeners: one that fails keeps no event from the others. */
public final class IsolatedListeners {
    private IsolatedListeners() {}

    /** Calls each listener in order. A failure is logged, and the next listener is called. */
    public static <T> void forEach(List<T> listeners, Consumer<T> call, Logger log) {
        for (T listener : listeners) {
            try {
                call.accept(listener);
            } catch (Throwable e) {
                // Also an Error: a metrics library of the wrong version must not keep the others from their events.
                log.warn(
                        "the listener {} failed; nothing else is affected",
                        listener.getClass().getName(),
                        e);
            }
        }
    }
}
