package io.idempotence.client;

import io.idempotence.IdempotenceId;
import java.time.Duration;
import java.util.Optional;
import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;

/** What one attempt of a logical call came to. Immutable. */
public final class IdempotenceAttemptEvent {
    private final String client;
    private final String method;
    private final @Nullable IdempotenceId id;
    private final int number;
    private final Outcome outcome;
    private final int status;
    private final int requests;
    private final int polls;
    private final Duration waited;
    private final Duration duration;
    private final @Nullable Duration waitBeforeNext;

    /** What was seen. */
    public enum Outcome {
        /** A first answer. */
        SUCCEEDED,
        /** A stored answer, a stored failure included (promise P4). */
        REPLAYED,
        /** No connection, or the HTTP client took none of it: the request certainly did not leave. */
        NOT_SENT,
        /** Sent, and nobody knows what became of it. */
        UNDETERMINED,
        /** A status that may be another one next time. */
        RETRYABLE,
        /** An earlier attempt was still running when time was over. */
        IN_PROGRESS,
        /** Another refusal of the server half. */
        REFUSED,
        /** An answer that asking again does not change, or a failure on this side. */
        FINAL
    }

    /**
     * For integrations.
     *
     * @param client the target's name
     * @param method the client method
     * @param id the call's ID, or null if it carries none
     * @param number 1 for the first attempt of the call
     * @param outcome what was seen
     * @param status the status of the answer, 0 for none
     * @param requests the requests that were given to the HTTP client
     * @param polls those of them that asked whether an earlier attempt still runs
     * @param waited the time that went by for an earlier attempt
     * @param duration from its first request to its end
     * @param waitBeforeNext the wait before the next attempt, or null if there is none
     */
    public IdempotenceAttemptEvent(
            String client,
            String method,
            @Nullable IdempotenceId id,
            int number,
            Outcome outcome,
            int status,
            int requests,
            int polls,
            Duration waited,
            Duration duration,
            @Nullable Duration waitBeforeNext) {
        this.client = client;
        this.method = method;
        this.id = id;
        this.number = number;
        this.outcome = outcome;
        this.status = status;
        this.requests = requests;
        this.polls = polls;
        this.waited = waited;
        this.duration = duration;
        this.waitBeforeNext = waitBeforeNext;
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
     * The call's ID. Not for metrics or logs above debug.
     *
     * @return the ID, or empty if the call carries none
     */
    public Optional<IdempotenceId> id() {
        return Optional.ofNullable(id);
    }

    /**
     * Which attempt of its call this is.
     *
     * @return 1 for the first
     */
    public int number() {
        return number;
    }

    /**
     * What was seen.
     *
     * @return the outcome
     */
    public Outcome outcome() {
        return outcome;
    }

    /**
     * The status of the answer.
     *
     * @return empty if there was none
     */
    public OptionalInt status() {
        return status == 0 ? OptionalInt.empty() : OptionalInt.of(status);
    }

    /**
     * The requests that were given to the HTTP client: one, and one more for each {@linkplain #polls() poll}. What it sends again
     * by itself, redirects, and requests that interceptors make of their own are not counted.
     *
     * @return 0 if nothing was given to it, because making the request failed
     */
    public int requests() {
        return requests;
    }

    /**
     * How often this attempt asked again because an earlier one still ran.
     *
     * @return 0 or more
     */
    public int polls() {
        return polls;
    }

    /**
     * How long this attempt waited for an earlier one: between its polls, and while the server half held its requests. A request
     * that was answered with a stored answer, or that the earlier attempt still runs, counts with all of its time.
     *
     * @return zero if it met no earlier one; at most {@link #duration()}
     */
    public Duration waited() {
        return waited;
    }

    /**
     * From the beginning of the attempt to its end, waits for an earlier attempt included.
     *
     * @return the time
     */
    public Duration duration() {
        return duration;
    }

    /**
     * The wait before the next attempt.
     *
     * @return empty if this was the last one
     */
    public Optional<Duration> waitBeforeNext() {
        return Optional.ofNullable(waitBeforeNext);
    }

    /** Everything but the ID. */
    @Override
    public String toString() {
        return outcome + " " + client + " " + method + ", attempt " + number
                + (status == 0 ? "" : ", status " + status) + ", requests " + requests + ", " + duration.toMillis()
                + " ms"
                + (waitBeforeNext == null ? "" : ", the next one in " + waitBeforeNext.toMillis() + " ms");
    }
}
