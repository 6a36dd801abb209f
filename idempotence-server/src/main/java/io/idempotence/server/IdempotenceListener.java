package io.idempotence.server;

import io.idempotence.IdempotenceId;
import io.idempotence.server.storage.StorageKey;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * A listener for events of the server half. It is called on the thread in which an event happens, so it must be fast and thread-safe. It
 * must not throw: what it throws is logged and otherwise ignored.
 */
@FunctionalInterface
public interface IdempotenceListener {
    /**
     * Called for each event.
     *
     * @param id the ID it is about; do not use it as a metric's label
     */
    void onEvent(IdempotenceEvent event, IdempotenceId id);

    /** The availability of the storage. */
    enum StorageState {
        /** The storage responds. This is the initial state. */
        AVAILABLE,
        /** The storage has failed repeatedly. Attempts are refused without a call to it, until a probe succeeds. */
        UNAVAILABLE
    }

    /** Called when the circuit breaker in front of the storage opens, and when a probe succeeds again. Does nothing unless overridden. */
    default void onStorage(StorageState state) {}

    /**
     * Called when an ID is released, so that its next attempt runs. {@link #onEvent} gets {@link IdempotenceEvent#RELEASED} as well.
     * Does nothing unless overridden.
     *
     * @param id the ID; do not use it as a metric's label
     * @param reason why it was released
     */
    default void onReleased(IdempotenceId id, ReleaseReason reason) {}

    /** The end of an attempt. */
    enum AttemptEnd {
        /** It ran. */
        RUN,
        /** It got the stored response of an earlier one. */
        REPLAY,
        /** It was refused. So counts also one that waits for another attempt after its claim was refused. */
        REFUSE
    }

    /**
     * Called with the time that this library itself added to an attempt at a request or an {@code execute}: for its claim and, if it
     * ran, for the record of its completion. The time of the handler, of waiting for another attempt, and of writes in the background is
     * not included. Does nothing unless overridden.
     *
     * @param end how the attempt ended
     * @param nanos the added time in nanoseconds
     */
    default void onOverhead(AttemptEnd end, long nanos) {}

    /**
     * Called before the claim of an attempt at a request or an {@code execute}. Does nothing unless overridden.
     *
     * @param id the ID; do not use it as a metric's label
     * @param key the key of its record, from which nobody can find out the ID
     * @return the listener for this attempt
     */
    default AttemptListener onAttempt(IdempotenceId id, StorageKey key) {
        return AttemptListener.IGNORED;
    }

    /** A listener for one attempt. */
    @FunctionalInterface
    interface AttemptListener {
        /** Does nothing. */
        AttemptListener IGNORED = (end, detail) -> {};

        /**
         * Called on each thread that is about to run the handler of an attempt, or the work of an {@code execute}: for a request once in
         * each of its dispatches. Does nothing unless overridden.
         *
         * @return called on the same thread when the handler or the work has returned, before its end is recorded there
         */
        default Runnable enter() {
            return () -> {};
        }

        /**
         * Called once, when the attempt has ended, perhaps on another thread than {@link #enter}. An attempt that runs ends when its
         * completion is recorded, or waits to be recorded.
         *
         * @param end how it ended
         * @param detail one of few words: for {@code RUN} {@code kept}, {@code released} or {@code unknown}; for {@code REFUSE} the code of
         *     the refusal; otherwise empty
         */
        void ended(AttemptEnd end, String detail);
    }

    /**
     * The reason why an ID was released, so that its next attempt runs.
     *
     * @param trigger who decided, or by what
     * @param status the response's status if the policy decided by it, else 0
     * @param exception the exception's class if the policy decided by it, else null
     */
    record ReleaseReason(
            Trigger trigger, int status, @Nullable Class<? extends Throwable> exception) {
        /** What released an ID. */
        public enum Trigger {
            /** The handler, with {@link IdempotentExecution#release()}. */
            HANDLER,
            /** The handler or a storage, with {@link IdempotentExecution#overtaken()}: another execution took effect. */
            OVERTAKEN,
            /** The policy, by the status. */
            STATUS,
            /** The policy, by the exception. */
            EXCEPTION,
            /** The transport that runs the handler, for a reason of its own. */
            TRANSPORT
        }

        static final ReleaseReason BY_HANDLER = new ReleaseReason(Trigger.HANDLER, 0, null);
        static final ReleaseReason OVERTAKEN = new ReleaseReason(Trigger.OVERTAKEN, 0, null);
        static final ReleaseReason BY_TRANSPORT = new ReleaseReason(Trigger.TRANSPORT, 0, null);

        static ReleaseReason ofStatus(int status) {
            return new ReleaseReason(Trigger.STATUS, status, null);
        }

        static ReleaseReason ofException(Throwable exception) {
            return new ReleaseReason(Trigger.EXCEPTION, 0, exception.getClass());
        }

        /**
         * {@return a short form for logs and metrics, without the ID: {@code handler}, {@code overtaken}, {@code transport}, the status, or
         * the exception's simple name}
         */
        @Override
        public String toString() {
            return switch (trigger) {
                case STATUS -> String.valueOf(status);
                case EXCEPTION -> exception == null ? "exception" : exception.getSimpleName();
                default -> trigger.name().toLowerCase(Locale.ROOT);
            };
        }
    }
}
