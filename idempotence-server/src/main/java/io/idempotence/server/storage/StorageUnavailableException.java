package io.idempotence.server.storage;

import io.idempotence.IdempotenceException;
import org.jspecify.annotations.Nullable;

/** The storage cannot say, or cannot be written. Nothing may be assumed about the record. Trying again may help. */
public final class StorageUnavailableException extends IdempotenceException {
    private static final long serialVersionUID = 1L;

    private final boolean givesBack;

    /**
     * For implementations of {@link IdempotenceStorage}.
     *
     * @param message which storage, what it did; without keys or passwords
     * @param cause the driver's exception, or null
     */
    public StorageUnavailableException(String message, @Nullable Throwable cause) {
        this(message, cause, false);
    }

    private StorageUnavailableException(String message, @Nullable Throwable cause, boolean givesBack) {
        super(message, cause);
        this.givesBack = givesBack;
    }

    /**
     * For implementations that write a claim, may not let it count, and release it again: {@link #givesBack()} is true.
     *
     * @param message which storage, what it did; without keys or passwords
     * @param cause the driver's exception, or null
     * @return the exception of {@link IdempotenceStorage#claim}
     */
    public static StorageUnavailableException givingBack(String message, @Nullable Throwable cause) {
        return new StorageUnavailableException(message, cause, true);
    }

    /**
     * True if the storage has sent a release after the claim that it refuses. The release may come late: a claim of the same owner that
     * was asked for after it, and granted, would be freed while its work runs. So only another owner may ask again.
     *
     * @return false unless made by {@link #givingBack}
     */
    public boolean givesBack() {
        return givesBack;
    }
}
