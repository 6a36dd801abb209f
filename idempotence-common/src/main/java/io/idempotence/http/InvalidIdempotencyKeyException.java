package io.idempotence.http;

import io.idempotence.IdempotenceException;

/** A field {@code Idempotency-Key} that contains no valid ID. The message has the reason and never the value. */
public final class InvalidIdempotencyKeyException extends IdempotenceException {
    private static final long serialVersionUID = 1L;

    InvalidIdempotencyKeyException(String message) {
        super(message);
    }
}
