package io.idempotence.server;

import io.idempotence.http.Refusal;
import java.time.Duration;

/** What a transport is to do with an attempt. */
public sealed interface Decision {
    /**
     * Run the handler, then {@link ClaimedExecution#finish} it, whatever happened.
     *
     * @param execution the right to run
     */
    record Run(ClaimedExecution execution) implements Decision {}

    /**
     * Give the stored result again, or, if it cannot be read, do what {@link Engine#unreadable} says.
     *
     * @param result the bytes given to {@link ClaimedExecution#finish} by the attempt that ran
     */
    record Replay(byte[] result) implements Decision {}

    /**
     * Refuse.
     *
     * @param refusal why
     * @param retryAfter when to ask again; zero if asking again does not help
     */
    record Refuse(Refusal refusal, Duration retryAfter) implements Decision {}
}
