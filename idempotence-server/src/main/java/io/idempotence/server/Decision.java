package io.idempotence.server;

import io.idempotence.http.Refusal;
import java.time.Duration;

/** The decision about an attempt: to run it, as a {@link ClaimedExecution}, or what it gets instead. */
public sealed interface Decision permits ClaimedExecution, Decision.Substitute {
    /** What an attempt gets instead of running: a replay or a refusal. */
    sealed interface Substitute extends Decision {}

    /**
     * The decision to replay the stored result. If that cannot be read, act on {@link Engine#unreadable} instead.
     *
     * @param result the bytes that the attempt that ran passed to {@link ClaimedExecution#finish}; shared with other attempts, so they must
     *     not be changed
     */
    record Replay(byte[] result) implements Substitute {}

    /**
     * The decision to refuse the attempt.
     *
     * @param refusal why
     * @param retryAfter when to retry; zero if a retry does not help
     */
    record Refuse(Refusal refusal, Duration retryAfter) implements Substitute {}
}
