package io.idempotence.server.storage;

import io.idempotence.IdempotenceException;
import org.jspecify.annotations.Nullable;

/** The storage cannot say, or cannot be written. Nothing may be assumed about the record. Trying again may help. */
public final class StorageUnavailableException extends IdempotenceException {
    private static final long serialVersionUID = 1L;

    private final boolean triedToGiveBack;
    private final boolean hasGivenBack;

    /**
     * For implementations of {@link IdempotenceStorage}.
     *
     * @param message which storage, what it did; without keys or passwords
     * @param cause the driver's exception, or null
     */
    public StorageUnavailableException(String message, @Nullable Throwable cause) {
        this(message, cause, false, false);
    }

    private StorageUnavailableException(
            String message, @Nullable Throwable cause, boolean triedToGiveBack, boolean hasGivenBack) {
        super(message, cause);
        this.triedToGiveBack = triedToGiveBack;
        this.hasGivenBack = hasGivenBack;
    }

    /**
     * For implementations that write a claim, may not let it count, and undo it: {@link #triedToGiveBack()} is true.
     *
     * @param message which storage, what it did; without keys or passwords
     * @param cause the driver's exception, or null
     * @param done whether the claim is undone; false if that failed
     * @return the exception of {@link IdempotenceStorage#claim}
     */
    public static StorageUnavailableException givingBack(String message, @Nullable Throwable cause, boolean done) {
        return new StorageUnavailableException(message, cause, true, done);
    }

    /**
     * True if the storage has refused a claim that it had written, and has undone it or tried to. That may take effect late: a claim
     * of the same owner that was asked for after it, and granted, would be freed while its work runs. So only another owner may ask
     * again.
     *
     * @return false unless made by {@link #givingBack}
     */
    public boolean triedToGiveBack() {
        return triedToGiveBack;
    }

    /**
     * True if the claim is undone. If not, it has to be given back later.
     *
     * @return what {@link #givingBack} was told
     */
    public boolean hasGivenBack() {
        return hasGivenBack;
    }
}
