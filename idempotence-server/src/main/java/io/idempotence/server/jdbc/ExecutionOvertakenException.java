package io.idempotence.server.jdbc;

import io.idempotence.IdempotenceException;

/**
 * The execution must not take effect: another one of the same ID has taken effect already, or this one no longer holds its claim. Thrown
 * inside the business transaction, which must roll back. The ID is released: its next attempt is told what happened. Behind the
 * filter the caller gets the other one's answer or is told to ask again, whatever becomes of this exception.
 */
public final class ExecutionOvertakenException extends IdempotenceException {
    private static final long serialVersionUID = 1L;

    ExecutionOvertakenException(String message) {
        super(message);
    }
}
