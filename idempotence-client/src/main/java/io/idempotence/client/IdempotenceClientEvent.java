package io.idempotence.client;

import io.idempotence.IdempotenceId;
import java.time.Duration;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** How one logical call ended. Immutable. */
public final class IdempotenceClientEvent {
    private final String client;
    private final String method;
    private final Result result;
    private final @Nullable IdempotenceId id;
    private final int attempts;
    private final int requests;
    private final Duration duration;
    private final int budgetLeft;

    /** What the caller got. */
    public enum Result {
        /** A first answer of the operation, 2xx. */
        SUCCEEDED,
        /** A stored answer (promise P4). */
        REPLAYED,
        /** A refusal of the server half. */
        REFUSED,
        /** An error status that is no stored answer, or an exception of the HTTP client or of the caller's own code. */
        FAILED,
        /** Nothing certain (promise P7). */
        UNKNOWN
    }

    /**
     * For integrations.
     *
     * @param client the target's name
     * @param method the client method
     * @param result what the caller got
     * @param id the call's ID, or null if it carried none
     * @param attempts the number of attempts
     * @param requests the number of HTTP requests
     * @param duration from opening to end
     * @param budgetLeft the tokens left in the target's retry budget
     */
    public IdempotenceClientEvent(
            String client,
            String method,
            Result result,
            @Nullable IdempotenceId id,
            int attempts,
            int requests,
            Duration duration,
            int budgetLeft) {
        this.client = client;
        this.method = method;
        this.result = result;
        this.id = id;
        this.attempts = attempts;
        this.requests = requests;
        this.duration = duration;
        this.budgetLeft = budgetLeft;
    }

    /**
     * The target's name.
     *
     * @return for Feign {@code Target.name()}
     */
    public String client() {
        return client;
    }

    /**
     * The client method.
     *
     * @return for example {@code Orders#create(Order)}; one of few values
     */
    public String method() {
        return method;
    }

    /**
     * What the caller got.
     *
     * @return the result
     */
    public Result result() {
        return result;
    }

    /**
     * The call's ID. Not for metrics or logs above debug.
     *
     * @return the ID, or empty if the call carried none
     */
    public Optional<IdempotenceId> id() {
        return Optional.ofNullable(id);
    }

    /**
     * The number of attempts.
     *
     * @return at least 1, but 0 for a call in doubt, such as a resumed one, that something above the client half kept from being
     *     made
     */
    public int attempts() {
        return attempts;
    }

    /**
     * The requests that were given to the HTTP client, polls of an execution in progress included. What it sends again by itself,
     * and redirects, are not counted.
     *
     * @return 0 if every attempt failed before sending
     */
    public int requests() {
        return requests;
    }

    /**
     * From the opening of the call to its end, waits included.
     *
     * @return the time
     */
    public Duration duration() {
        return duration;
    }

    /**
     * The tokens left in the target's {@link RetryBudget} when the call ended.
     *
     * @return 0 to the capacity
     */
    public int budgetLeft() {
        return budgetLeft;
    }

    /** Everything but the ID. */
    @Override
    public String toString() {
        return result + " " + client + " " + method + ", attempts " + attempts + ", requests " + requests + ", "
                + duration.toMillis() + " ms";
    }
}
