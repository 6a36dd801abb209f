package io.idempotence.server;

import io.idempotence.IdempotenceException;
import io.idempotence.IdempotenceId;
import io.idempotence.http.Refusal;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/** A refusal by {@link Idempotence#execute}: the work did not run, or was overtaken, and there is no result to return. */
public final class ExecutionRefusedException extends IdempotenceException {
    private static final long serialVersionUID = 1L;

    private final Refusal refusal;
    private final transient IdempotenceId id;
    private final Duration retryAfter;

    /** @param cause why a stored result cannot be decoded, or null */
    ExecutionRefusedException(Refusal refusal, IdempotenceId id, Duration retryAfter, @Nullable Throwable cause) {
        super(refusal.code() + ": " + refusal.title(), cause);
        this.refusal = refusal;
        this.id = id;
        this.retryAfter = retryAfter;
    }

    /** {@return the reason: in-progress, outcome-unknown, result-unavailable, key-reused or storage-unavailable} */
    public Refusal refusal() {
        return refusal;
    }

    /** {@return the ID that was given to {@code execute}; null in a deserialized exception} */
    public IdempotenceId id() {
        return id;
    }

    /**
     * When to retry.
     *
     * @return zero if a retry does not help
     */
    public Duration retryAfter() {
        return retryAfter;
    }
}
