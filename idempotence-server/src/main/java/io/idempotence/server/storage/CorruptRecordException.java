package io.idempotence.server.storage;

import io.idempotence.IdempotenceException;

/**
 * A record that cannot be read: damaged, written by other software, or of a newer format (T20). Nothing ran and nothing was changed. A
 * retry does not help; a person must investigate.
 */
public final class CorruptRecordException extends IdempotenceException {
    private static final long serialVersionUID = 1L;

    /**
     * For implementations of {@link IdempotenceStorage}.
     *
     * @param message what cannot be read, without the record's content
     */
    public CorruptRecordException(String message) {
        super(message);
    }
}
