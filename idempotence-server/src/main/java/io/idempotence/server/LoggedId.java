package io.idempotence.server;

import io.idempotence.IdempotenceId;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.MDC;

/**
 * The ID in the MDC of the current thread, under the key {@code idempotenceId}. The application's log pattern decides whether it is shown.
 */
final class LoggedId {
    private static final Logger LOG = LoggerFactory.getLogger(LoggedId.class);
    private static final String KEY = "idempotenceId";

    private LoggedId() {}

    /**
     * Puts an ID into the MDC. The returned task restores the previous value, on the same thread. If the application's MDC fails, log lines
     * lack the ID: a payment must not depend on them.
     */
    static Runnable put(IdempotenceId id) {
        try {
            @Nullable String before = MDC.get(KEY);
            MDC.put(KEY, id.value());
            return () -> restore(before);
        } catch (RuntimeException | LinkageError e) {
            LOG.debug("the MDC failed; log lines lack the ID", e);
            return () -> {};
        }
    }

    private static void restore(@Nullable String before) {
        try {
            if (before == null) {
                MDC.remove(KEY);
            } else {
                MDC.put(KEY, before);
            }
        } catch (RuntimeException | LinkageError e) {
            LOG.debug("the MDC failed; later lines of this thread may have an ID that is not theirs", e);
        }
    }
}
