package io.idempotence.server.storage;

import io.idempotence.IdempotenceException;

/**
 * The record is there but cannot be read: damaged, written by something else, or of a newer format (T20). Nothing ran and nothing
 * was changed. Trying again does not help; a person must look.
 */
public final class CorruptRecordException extends IdempotenceException {
    private static final long serialVersionUID = 1L;

    /**
     * For implementations of {@link IdempotenceStorage}.
     *
     * @param message what cannot be read; without the record's content
     */
    public CorruptRecordException(String message) {
        super(message);
    }
}
