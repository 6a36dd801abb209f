package io.idempotence.client;

import io.idempotence.IdempotenceId;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * A logical call ended and its outcome is unknown: the operation may have been executed (promise P7).
 *
 * <p>Implemented by the exceptions that say so. Keep the {@link #id()}: the same call made again under it, with {@link
 * IdempotenceScope#resume} or the header argument, is answered with the first one's result or executed once, as long as the
 * server half remembers the ID (its retention, 24 hours by default). After that it would be executed as a new one: look into
 * the business data instead. If an execution broke off at the server, asking again ends in the unknown again until a person or a
 * rule there has decided.
 */
public interface OutcomeUnknown {
    /**
     * The ID every attempt carried.
     *
     * @return the ID
     */
    IdempotenceId id();

    /**
     * When the first request of the call left, by this machine's clock: the server half may forget the ID its retention later.
     * Keep it with the ID. Of a resumed call, the time that {@link IdempotenceScope#resume} got, so that asking again and again
     * does not move it.
     *
     * @return the time
     */
    Instant firstSentAt();

    /**
     * How many attempts were made. Polls of an execution in progress count as part of their attempt.
     *
     * @return at least 1, but 0 for a call that something above the client half, such as an open circuit breaker, kept from being
     *     made, when it is resumed or an earlier call in its {@link IdempotenceScope} is in doubt
     */
    int attempts();

    /**
     * What the last attempt ended with.
     *
     * @return the failure, or null if there was none to tell
     */
    @Nullable
    Throwable lastCause();
}
