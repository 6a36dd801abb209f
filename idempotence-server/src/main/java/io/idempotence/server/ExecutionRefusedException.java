package io.idempotence.server;

import io.idempotence.IdempotenceException;
import io.idempotence.IdempotenceId;
import io.idempotence.http.Refusal;
import java.time.Duration;

/** {@link Idempotence#execute} did not run the work, or only one that was overtaken, and has no result of it to give. */
public final class ExecutionRefusedException extends IdempotenceException {
    private static final long serialVersionUID = 1L;

    private final Refusal refusal;
    private final transient IdempotenceId id;
    private final Duration retryAfter;

    ExecutionRefusedException(Refusal refusal, IdempotenceId id, Duration retryAfter) {
        super(refusal.code() + ": " + refusal.title());
        this.refusal = refusal;
        this.id = id;
        this.retryAfter = retryAfter;
    }

    /**
     * Why.
     *
     * @return in-progress, outcome-unknown, result-unavailable, key-reused or storage-unavailable
     */
    public Refusal refusal() {
        return refusal;
    }

    /**
     * Which ID.
     *
     * @return the ID given to {@code execute}
     */
    public IdempotenceId id() {
        return id;
    }

    /**
     * When to ask again.
     *
     * @return zero if asking again does not help
     */
    public Duration retryAfter() {
        return retryAfter;
    }
}
