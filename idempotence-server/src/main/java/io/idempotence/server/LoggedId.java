package io.idempotence.server;

import io.idempotence.IdempotenceId;
import org.jspecify.annotations.Nullable;
import org.slf4j.MDC;

/** The ID in the log: MDC key {@code idempotenceId} of the current thread. The application's log pattern decides whether it shows. */
final class LoggedId {
    private static final String KEY = "idempotenceId";

    private LoggedId() {}

    /** Puts the ID there. What is returned puts back what was there before, on the same thread. */
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
