package io.idempotence.server;

import io.idempotence.IdempotenceId;
import io.idempotence.server.IdempotenceListener.ReleaseReason;
import io.idempotence.server.storage.CorruptRecordException;
import io.idempotence.server.storage.StorageKey;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.MDC;

/** The events of one {@link Idempotence}, for the listener and the log. Messages contain IDs at DEBUG only. The MDC always has the ID. */
final class Events {
    /** The only logger of this package, named after its facade. */
    static final Logger LOG = LoggerFactory.getLogger("io.idempotence.server.Idempotence");

    private static final String MDC_KEY = "idempotenceId";

    private final IdempotenceListener listener;
    private final OutageLog outage = new OutageLog(LOG, System::nanoTime);

    Events(@Nullable IdempotenceListener listener) {
        this.listener = listener == null ? (event, id) -> {} : listener;
    }

    void overhead(IdempotenceListener.AttemptEnd end, long nanos) {
        callListener("an overhead", () -> listener.onOverhead(end, nanos));
    }

    IdempotenceListener.AttemptListener attempt(IdempotenceId id, StorageKey key) {
        try {
            return listener.onAttempt(id, key);
        } catch (Throwable e) {
            LOG.warn("the idempotence listener failed on the beginning of an attempt", e);
            return IdempotenceListener.AttemptListener.IGNORED;
        }
    }

    /** Returns what leaves the attempt on the same thread. */
    Runnable entered(IdempotenceListener.AttemptListener attempt) {
        try {
            Runnable leave = attempt.enter();
            return () -> callListener("the return of a handler", leave);
        } catch (Throwable e) {
            LOG.warn("the idempotence listener failed on the run of a handler", e);
            return () -> {};
        }
    }

    void ended(IdempotenceListener.AttemptListener attempt, IdempotenceListener.AttemptEnd end, String detail) {
        callListener("the end of an attempt", () -> attempt.ended(end, detail));
    }

    void publish(IdempotenceEvent event, IdempotenceId id) {
        LOG.debug("{} {}", event, id);
        callListener(event, () -> listener.onEvent(event, id));
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
        callListener(reason, () -> listener.onReleased(id, reason));
    }

    /** Reports a failure of the storage. It is logged as part of an outage, unless it is about a single record. */
    void storageFailed(IdempotenceId id, String what, Throwable cause) {
        logStorageFailed(id, what, cause);
        publish(IdempotenceEvent.STORAGE_ERROR, id);
    }

    /** Logs a failure of the storage without an event. The event is published elsewhere, or there is none yet. */
    void logStorageFailed(IdempotenceId id, String what, Throwable cause) {
        if (cause instanceof CorruptRecordException) {
            log(IdempotenceEvent.STORAGE_ERROR, id, what, cause);
        } else {
            LOG.debug("{} {}", id, what, cause);
            within(id, () -> outage.failed(what, cause));
        }
    }

    /** Logs an event that is published elsewhere. */
    void log(IdempotenceEvent event, IdempotenceId id, String what, @Nullable Throwable cause) {
        within(id, () -> LOG.warn("{}: {}", event, what, cause));
    }

    /** Reports a claim under which nothing ran, and which a bug of the storage keeps from being given back. A person has to act. */
    void claimStays(IdempotenceId id, StorageKey key, int failures, Throwable cause) {
        within(
                id,
                () -> LOG.error(
                        "a claim under which nothing ran could not be given back: the storage threw an exception that it must"
                                + " not throw, {} times in a row. This is a bug of the storage; fix it. Then find the record {}:"
                                + " if there is one, it is abandoned when its lease is over; resolve it",
                        failures,
                        key,
                        cause));
        publish(IdempotenceEvent.STORAGE_ERROR, id);
    }

    void storageResponded() {
        outage.responded();
    }

    boolean isStorageFailing() {
        return outage.isFailing();
    }

    void probeFailed(Throwable cause) {
        LOG.debug("a probe of the storage failed", cause);
        outage.probeFailed();
    }

    void storageIs(IdempotenceListener.StorageState state) {
        LOG.debug("the storage is {}", state);
        callListener(state, () -> listener.onStorage(state));
    }

    /**
     * Puts an ID into the MDC of this thread. The application's log pattern decides whether it is shown. The returned task restores the
     * previous value, on the same thread. If the application's MDC fails, log lines lack the ID: a payment must not depend on them.
     */
    static Runnable logged(IdempotenceId id) {
        try {
            @Nullable String before = MDC.get(MDC_KEY);
            MDC.put(MDC_KEY, id.value());
            return () -> restore(before);
        } catch (RuntimeException | LinkageError e) {
            LOG.debug("the MDC failed; log lines lack the ID", e);
            return () -> {};
        }
    }

    private static void restore(@Nullable String before) {
        try {
            if (before == null) {
                MDC.remove(MDC_KEY);
            } else {
                MDC.put(MDC_KEY, before);
            }
        } catch (RuntimeException | LinkageError e) {
            LOG.debug("the MDC failed; later lines of this thread may have an ID that is not theirs", e);
        }
    }

    static void within(IdempotenceId id, Runnable logging) {
        Runnable leaveLog = logged(id);
        try {
            logging.run();
        } finally {
            leaveLog.run();
        }
    }

    private static void callListener(Object what, Runnable listening) {
        try {
            listening.run();
        } catch (Throwable e) {
            LOG.warn("the idempotence listener failed on {}", what, e);
        }
    }
}
