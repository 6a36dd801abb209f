package io.idempotence.server.storage;

import io.idempotence.IdempotenceException;
import org.jspecify.annotations.Nullable;

/** A failure of the storage. A retry may help. Unless {@link #nothingWritten()} is true, the record's state is unknown. */
public final class StorageUnavailableException extends IdempotenceException {
    private static final long serialVersionUID = 1L;

    /** The certainty about the effect of a failed call. */
    public enum Certainty {
        /** Nothing: it may or may not have taken effect. */
        NONE,
        /** It was never sent to the storage, and wrote nothing. */
        NOT_SENT,
        /** The storage is healthy, but refused this one call, and wrote nothing. It is not an outage: other calls may succeed. */
        REFUSED,
        /**
         * The storage wrote this claim, did not let it count, and has released it. The release may take effect late. It would then also
         * release a later claim of the same owner, while its work runs. So only another owner may claim again.
         */
        GIVEN_BACK,
        /** As {@link #GIVEN_BACK}, but the release has failed: the claim has to be released later. */
        TO_GIVE_BACK
    }

    private final Certainty certainty;

    /**
     * For implementations of {@link IdempotenceStorage}: the call may or may not have taken effect.
     *
     * @param message the storage and what it did, without keys or passwords
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
     * For implementations whose call was certainly not sent to the storage: no free connection in the pool, connection refused. {@link
     * #nothingWritten()} is true.
     *
     * @param message the storage and what it did, without keys or passwords
     * @param cause the driver's exception, or null
     */
    public static StorageUnavailableException notSent(String message, @Nullable Throwable cause) {
        return new StorageUnavailableException(message, cause, Certainty.NOT_SENT);
    }

    /**
     * For implementations whose storage is healthy and refused this one write, for example because it is full. {@link #nothingWritten()} is
     * true.
     *
     * @param message the storage and why it refused, without keys or passwords
     * @param cause the driver's exception, or null
     */
    public static StorageUnavailableException refused(String message, @Nullable Throwable cause) {
        return new StorageUnavailableException(message, cause, Certainty.REFUSED);
    }

    /**
     * For implementations that wrote a claim, must not let it count, and release it.
     *
     * @param message the storage and what it did, without keys or passwords
     * @param cause the driver's exception, or null
     * @param done whether the claim is released; false if that failed
     * @return the exception of {@link IdempotenceStorage#claim}
     */
    public static StorageUnavailableException givingBack(String message, @Nullable Throwable cause, boolean done) {
        return new StorageUnavailableException(message, cause, done ? Certainty.GIVEN_BACK : Certainty.TO_GIVE_BACK);
    }

    /**
     * Whether the call certainly wrote nothing. A claim that failed like this is neither repeated nor released.
     *
     * @return true if made by {@link #notSent} or {@link #refused}
     */
    public boolean nothingWritten() {
        return certainty == Certainty.NOT_SENT || certainty == Certainty.REFUSED;
    }

    /** {@return what is certain about the failed call; {@link Certainty#NONE} unless made by one of the static methods} */
    public Certainty certainty() {
        return certainty;
    }
}
