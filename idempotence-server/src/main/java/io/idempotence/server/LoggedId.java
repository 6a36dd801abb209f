package io.idempotence.server;

import io.idempotence.IdempotenceId;
import org.jspecify.annotations.Nullable;
import org.slf4j.MDC;

/**
 * The ID in the MDC of the current thread, under the key {@code idempotenceId}. The application's log pattern decides whether it is shown.
 */
final class LoggedId {
    private static final String KEY = "idempotenceId";

    private LoggedId() {}

    /** Puts an ID into the MDC. The returned task restores the previous value, on the same thread. */
    static Runnable put(IdempotenceId id) {
        @Nullable String before = MDC.get(KEY);
        MDC.put(KEY, id.value());
        return () -> {
            if (before == null) {
                MDC.remove(KEY);
            } else {
                MDC.put(KEY, before);
            }
        };
    }
}
