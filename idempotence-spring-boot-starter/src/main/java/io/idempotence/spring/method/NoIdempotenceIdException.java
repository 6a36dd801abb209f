package io.idempotence.spring.method;

import io.idempotence.IdempotenceException;
import org.jspecify.annotations.Nullable;

/** A call of an {@code @Idempotent} bean method whose arguments give no ID. The method did not run, and a retry with equal arguments does not help. */
public final class NoIdempotenceIdException extends IdempotenceException {
    private static final long serialVersionUID = 1L;

    private final String expression;

    NoIdempotenceIdException(String message, String expression, @Nullable Throwable cause) {
        super(message, cause);
        this.expression = expression;
    }

    /**
     * The expression.
     *
     * @return the annotation's {@code id}
     */
    public String expression() {
        return expression;
    }
}
