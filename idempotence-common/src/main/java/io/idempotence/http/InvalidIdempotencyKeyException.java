package io.idempotence.http;

import io.idempotence.IdempotenceException;

/** The field {@code Idempotency-Key} is there but does not name an ID. The message says why and never shows the value. */
public final class InvalidIdempotencyKeyException extends IdempotenceException {
    private static final long serialVersionUID = 1L;

    InvalidIdempotencyKeyException(String message) {
        super(message);
    }
}
