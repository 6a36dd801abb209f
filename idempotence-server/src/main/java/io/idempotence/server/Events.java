package io.idempotence.server;

import io.idempotence.IdempotenceId;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Tells the listener, and the log where a person should look. Messages hold IDs at debug only; the MDC has the ID always. */
final class Events {
    private static final Logger LOG = LoggerFactory.getLogger(Idempotence.class);

    private static final IdempotenceListener NOBODY = (event, id) -> {};

    private final IdempotenceListener listener;

    Events(@Nullable IdempotenceListener listener) {
        this.listener = listener == null ? NOBODY : listener;
    }

    /** Now, in nanoseconds; 0 if nobody listens, who costs nothing. */
    long startOfOverhead() {
        return listener == NOBODY ? 0 : System.nanoTime();
    }

    long overheadSince(long start) {
        return listener == NOBODY ? 0 : System.nanoTime() - start;
    }

    void overhead(IdempotenceListener.Outcome outcome, long nanos) {
        try {
            listener.onOverhead(outcome, nanos);
        } catch (Throwable e) {
            LOG.warn("the idempotence listener failed on an overhead", e);
        }
    }

    void publish(IdempotenceEvent event, IdempotenceId id) {
        LOG.debug("{} {}", event, id);
        try {
            listener.onEvent(event, id);
        } catch (Throwable e) {
            LOG.warn("the idempotence listener failed on {}", event, e);
        }
    }

    void publish(IdempotenceEvent event, IdempotenceId id, String what) {
        publish(event, id, what, null);
    }

    void publish(IdempotenceEvent event, IdempotenceId id, String what, @Nullable Throwable cause) {
        log(event, id, what, cause);
        publish(event, id);
    }

    /** Only for the log: the listener is told by somebody else. */
    void log(IdempotenceEvent event, IdempotenceId id, String what, @Nullable Throwable cause) {
        Runnable leaveLog = LoggedId.put(id);
        try {
            LOG.warn("{}: {}", event, what, cause);
        } finally {
            leaveLog.run();
        }
    }
}
