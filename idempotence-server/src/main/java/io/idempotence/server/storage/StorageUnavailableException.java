package io.idempotence.server.storage;

import io.idempotence.IdempotenceException;
import org.jspecify.annotations.Nullable;

/** The storage cannot say, or cannot be written. Nothing may be assumed about the record. Trying again may help. */
public final class StorageUnavailableException extends IdempotenceException {
    private static final long serialVersionUID = 1L;

    /**
     * For implementations of {@link IdempotenceStorage}.
     *
     * @param message which storage, what it did; without keys or passwords
     * @param cause the driver's exception, or null
     */
    public StorageUnavailableException(String message, @Nullable Throwable cause) {
        super(message, cause);
    }
}
