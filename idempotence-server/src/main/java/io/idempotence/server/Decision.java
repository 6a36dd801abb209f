package io.idempotence.server;

import io.idempotence.http.Refusal;
import java.time.Duration;

/** The decision about an attempt: run, replay or refuse. */
public sealed interface Decision {
    /**
     * The decision to run the handler. Call {@link ClaimedExecution#finish} when it has ended, whatever happened.
     *
     * @param execution the right to run
     */
    record Run(ClaimedExecution execution) implements Decision {}

    /**
     * The decision to replay the stored result. If that cannot be read, act on {@link Engine#unreadable} instead.
     *
     * @param result the bytes that the attempt that ran passed to {@link ClaimedExecution#finish}
     */
    record Replay(byte[] result) implements Decision {}

    /**
     * The decision to refuse the attempt.
     *
     * @param refusal why
     * @param retryAfter when to retry; zero if a retry does not help
     */
    record Refuse(Refusal refusal, Duration retryAfter) implements Decision {}
}
