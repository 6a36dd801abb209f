package io.idempotence;

import org.jspecify.annotations.Nullable;

/**
 * A failure of this library itself, never of the operation that it protects.
 *
 * <p>Each subclass is named after what happened, and has accessors for what a caller needs in order to act.
 */
public abstract class IdempotenceException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** @param message what went wrong and how to fix it; never a raw ID, a header value or a body */
    protected IdempotenceException(String message) {
        super(message);
    }

    /**
     * @param message what went wrong and how to fix it; never a raw ID, a header value or a body
     * @param cause the exception that caused it, or null
     */
    protected IdempotenceException(String message, @Nullable Throwable cause) {
        super(message, cause);
    }
}
