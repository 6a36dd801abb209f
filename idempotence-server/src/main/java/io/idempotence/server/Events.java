package io.idempotence.server;

import io.idempotence.IdempotenceId;
import io.idempotence.server.storage.CorruptRecordException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Tells the listener, and the log where a person should look. Messages hold IDs at debug only; the MDC has the ID always. */
final class Events {
    /** The one logger of this package, which operators know by the name of its facade. */
    static final Logger LOG = LoggerFactory.getLogger("io.idempotence.server.Idempotence");

    private final IdempotenceListener listener;
    private final OutageLog outage = new OutageLog(LOG, System::nanoTime);

    Events(@Nullable IdempotenceListener listener) {
        this.listener = listener == null ? (event, id) -> {} : listener;
    }

    void overhead(IdempotenceListener.Outcome outcome, long nanos) {
        tell("an overhead", () -> listener.onOverhead(outcome, nanos));
    }

    void publish(IdempotenceEvent event, IdempotenceId id) {
        LOG.debug("{} {}", event, id);
        tell(event, () -> listener.onEvent(event, id));
    }

    void publish(IdempotenceEvent event, IdempotenceId id, String what) {
        publish(event, id, what, null);
    }

    void publish(IdempotenceEvent event, IdempotenceId id, String what, @Nullable Throwable cause) {
        log(event, id, what, cause);
        publish(event, id);
    }

    void released(IdempotenceId id, ReleaseReason reason) {
        publish(IdempotenceEvent.RELEASED, id);
        tell(reason, () -> listener.onReleased(id, reason));
    }

    /** A failure of the storage is part of an outage, and logged as such; one of a single record is logged. */
    void storageFailed(IdempotenceId id, String what, Throwable cause) {
        logStorageFailed(id, what, cause);
        publish(IdempotenceEvent.STORAGE_ERROR, id);
    }

    /** Only for the log: the listener is told by somebody else, or nothing has come of it yet. */
    void logStorageFailed(IdempotenceId id, String what, Throwable cause) {
        if (cause instanceof CorruptRecordException) {
            log(IdempotenceEvent.STORAGE_ERROR, id, what, cause);
        } else {
            LOG.debug("{} {}", id, what, cause);
            within(id, () -> outage.failed(what, cause));
        }
    }

    /** Only for the log: the listener is told by somebody else. */
    void log(IdempotenceEvent event, IdempotenceId id, String what, @Nullable Throwable cause) {
        within(id, () -> LOG.warn("{}: {}", event, what, cause));
    }

    void storageAnswered() {
        outage.answered();
    }

    boolean isStorageFailing() {
        return outage.isFailing();
    }

    void storageDidNotAnswer(Throwable cause) {
        LOG.debug("a probe of the storage failed", cause);
        outage.goesOn();
    }

    void storageIs(IdempotenceListener.StorageState state) {
        LOG.debug("the storage is {}", state);
        tell(state, () -> listener.onStorage(state));
    }

    private static void within(IdempotenceId id, Runnable logging) {
        Runnable leaveLog = LoggedId.put(id);
        try {
            logging.run();
        } finally {
            leaveLog.run();
        }
    }

    private static void tell(Object what, Runnable listening) {
        try {
            listening.run();
        } catch (Throwable e) {
            LOG.warn("the idempotence listener failed on {}", what, e);
        }
    }
}
