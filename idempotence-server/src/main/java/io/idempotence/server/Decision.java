package io.idempotence.server;

import io.idempotence.http.Refusal;
import java.time.Duration;

/** The decision about an attempt: run, replay or refuse. */
public sealed interface Decision {
    /**
     * Run the handler, then call {@link ClaimedExecution#finish}, whatever happened.
     *
     * @param execution the right to run
     */
    record Run(ClaimedExecution execution) implements Decision {}

    /**
     * Replay the stored result. If it cannot be read, act on {@link Engine#unreadable} instead.
     *
     * @param result the bytes that the attempt that ran passed to {@link ClaimedExecution#finish}
     */
    record Replay(byte[] result) implements Decision {}

    /**
     * Refuse the attempt.
     *
     * @param refusal why
     * @param retryAfter when to retry; zero if a retry does not help
     */
    record Refuse(Refusal refusal, Duration retryAfter) implements Decision {}
}
