package io.idempotence.server.jdbc;

import io.idempotence.IdempotenceException;

/**
 * The refusal of an execution that must not take effect: another one of the same ID has taken effect already, or this one no longer holds
 * its claim. Thrown inside the business transaction, which must roll back. The ID is released, and its next attempt gets the outcome.
 * Behind the filter the caller gets the other execution's response or is refused as in progress, whatever happens to this exception.
 */
public final class ExecutionOvertakenException extends IdempotenceException {
    private static final long serialVersionUID = 1L;

    ExecutionOvertakenException(String message) {
        super(message);
    }
}
