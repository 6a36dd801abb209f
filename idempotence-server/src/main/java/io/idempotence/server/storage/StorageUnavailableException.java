package io.idempotence.server.storage;

import io.idempotence.IdempotenceException;
import org.jspecify.annotations.Nullable;

/**
 * The storage cannot say, or cannot be written. Trying again may help. Unless {@link #nothingWritten()} is true, nothing may be
 * assumed about the record.
 */
public final class StorageUnavailableException extends IdempotenceException {
    private static final long serialVersionUID = 1L;

    /** What is certain about the call that failed. */
    public enum Certainty {
        /** Nothing: it may or may not have taken effect. */
        NONE,
        /** It never left for the storage, and wrote nothing. */
        NOT_SENT,
        /** The storage is well, has refused this one call, and wrote nothing. It is no outage: other calls may well succeed. */
        REFUSED,
        /**
         * The storage wrote this claim, did not let it count, and has undone it. The undoing may take effect late: a claim of the same
         * owner that was asked for after it, and granted, would be freed while its work runs. So only another owner may ask again.
         */
        GIVEN_BACK,
        /** As {@link #GIVEN_BACK}, but to undo the claim has failed: it has to be given back later. */
        TO_GIVE_BACK
    }

    private final Certainty certainty;

    /**
     * For implementations of {@link IdempotenceStorage}: the call may or may not have taken effect.
     *
     * @param message which storage, what it did; without keys or passwords
     * @param cause the driver's exception, or null
     */
    public StorageUnavailableException(String message, @Nullable Throwable cause) {
        this(message, cause, Certainty.NONE);
    }

    private StorageUnavailableException(String message, @Nullable Throwable cause, Certainty certainty) {
        super(message, cause);
        this.certainty = certainty;
    }

    /**
     * For implementations that know that the call never left for the storage: no free connection in the pool, connection refused.
     * {@link #nothingWritten()} is true.
     *
     * @param message which storage, what it did; without keys or passwords
     * @param cause the driver's exception, or null
     * @return the exception
     */
    public static StorageUnavailableException notSent(String message, @Nullable Throwable cause) {
        return new StorageUnavailableException(message, cause, Certainty.NOT_SENT);
    }

    /**
     * For implementations whose storage is well, and has refused this one write: it is full, for example. {@link #nothingWritten()}
     * is true.
     *
     * @param message which storage, why it refused; without keys or passwords
     * @param cause the driver's exception, or null
     * @return the exception
     */
    public static StorageUnavailableException refused(String message, @Nullable Throwable cause) {
        return new StorageUnavailableException(message, cause, Certainty.REFUSED);
    }

    /**
     * For implementations that write a claim, may not let it count, and undo it.
     *
     * @param message which storage, what it did; without keys or passwords
     * @param cause the driver's exception, or null
     * @param done whether the claim is undone; false if that failed
     * @return the exception of {@link IdempotenceStorage#claim}
     */
    public static StorageUnavailableException givingBack(String message, @Nullable Throwable cause, boolean done) {
        return new StorageUnavailableException(message, cause, done ? Certainty.GIVEN_BACK : Certainty.TO_GIVE_BACK);
    }

    /**
     * True if the call certainly wrote nothing. A claim that failed so is neither sent again nor given back.
     *
     * @return true if made by {@link #notSent} or {@link #refused}
     */
    public boolean nothingWritten() {
        return certainty == Certainty.NOT_SENT || certainty == Certainty.REFUSED;
    }

    /**
     * What is certain about the call that failed.
     *
     * @return {@link Certainty#NONE} unless made by one of the static methods
     */
    public Certainty certainty() {
        return certainty;
    }
}
