package io.idempotence.server;

import io.idempotence.IdempotenceId;
import io.idempotence.OnAbandoned;
import io.idempotence.server.storage.Claim;
import io.idempotence.server.storage.StorageKey;
import java.util.List;

/**
 * The execution that a handler is part of. The handler reads its ID, fence and attempt number here, and may decide about the ID at run
 * time. Such a decision overrides the policy. The last decision before the handler ends counts. Thread-safe.
 */
public interface IdempotentExecution {
    /**
     * The executions that this thread is part of. There are several if a handler calls {@link Idempotence#execute}.
     *
     * @return the innermost first; empty if there is none. Another thread to which a handler passes work has none, nor has a task that a worker of
     *     a fork-join pool runs while it waits, unless the work is {@link #carried}
     */
    static List<IdempotentExecution> current() {
        return ClaimedExecution.running();
    }

    /**
     * Carries the executions of this thread to the thread that runs a task: {@link #current()}, the ID in the log, and the IDs of its calls.
     * In Spring: <code>@Bean TaskDecorator executions() { return IdempotentExecution::carried; }</code>. Spring Boot 3 applies no {@code
     * TaskDecorator} if there are several beans: make one of all.
     *
     * @param task runs on another thread. What it declares counts if it does so before the execution ends
     * @return the task to pass on; {@code task} itself if this thread is part of no execution
     */
    static Runnable carried(Runnable task) {
        return ClaimedExecution.carried(task);
    }

    /** The ID of the logical call. */
    IdempotenceId id();

    /** The key of this ID's record in the storage. */
    StorageKey key();

    /** The claim under which this execution runs. A storage needs it; handlers need {@link #key} and {@link #fence} at most. */
    Claim claim();

    /**
     * A number that grows with every execution of this ID. Store it with the business data, and refuse a write that has a smaller number: a
     * late owner then cannot change the data either. The numbers start again at 1 after the retention, or after the record was deleted.
     * Delete the stored number then, too, or every later execution is refused.
     *
     * @return 1 for the first execution
     */
    long fence();

    /**
     * The number of this attempt as its caller counts: {@code Idempotency-Attempt} of a request, {@link IdempotentCall#attempt()}
     * elsewhere. A hint for logs that must not be trusted, because the caller chooses it. The first execution of an ID may be its caller's
     * third attempt.
     *
     * @return 1 for the first attempt, and if the caller sends no number from 1 to 999,999,999
     */
    int attempt();

    /**
     * Whether this execution took over the claim of an abandoned one, and so may be the second (T7).
     *
     * <p>If this execution then fails and the policy releases the ID, the next execution under {@link OnAbandoned#RE_EXECUTE} is a
     * take-over as well, because the effect of the abandoned execution is still unknown. The next execution is not a take-over if a
     * recovery rule found that nothing was applied, or if this execution called {@link #release()}, which declares that nothing took
     * effect. {@code fence() > 1} means that an earlier execution of this ID began.
     *
     * @return true after a take-over
     */
    boolean takenOver();

    /**
     * Keeps the ID: the response is recorded and replayed, even if it is a failure. The exception of work that throws cannot be replayed:
     * later attempts are then refused as result-unavailable.
     */
    void keep();

    /**
     * Releases the ID, even if the response is a success. Call it only if nothing took effect, neither in this execution nor, after a
     * take-over, in an earlier one. A call after {@link #tookEffect()} is a contradiction: the outcome is then marked unknown instead, with
     * a warning in the log.
     */
    void release();

    /**
     * Declares that nothing took effect so far, for example because the transaction was rolled back. Unlike {@link #release()} it does not
     * decide about the ID: if the policy would mark a failure as unknown, it releases the ID instead. A success is still kept.
     *
     * <p>A handler whose only effects are its transactions calls this method after a rollback, {@link #mayTakeEffect()} when it begins
     * another transaction, and {@link #tookEffect()} after a commit. Either of the other two calls revokes this declaration.
     */
    void nothingTookEffect();

    /**
     * Declares that something took effect for good, for example because a transaction was committed. It cannot be revoked: the ID is never
     * released after it. Whatever would release it (the policy, {@link #release()}, {@link #overtaken()}) marks the outcome as unknown.
     */
    void tookEffect();

    /**
     * Declares that this execution must not take effect, because another execution of this ID has taken effect, or because this one no
     * longer holds its claim. The ID is released, and the caller gets the response of the other execution or is refused as in progress,
     * whatever this handler returns.
     */
    void overtaken();

    /**
     * Declares that this execution may take effect after all. It revokes {@link #release()}, {@link #overtaken()} and {@link
     * #nothingTookEffect()}, and the policy decides unless there is a later decision. Storages call it for a transaction that is retried
     * after a failure. A handler whose response must be kept calls {@link #keep()}.
     */
    void mayTakeEffect();

    /** Marks the outcome as unknown: later attempts are refused as outcome-unknown (T13). */
    void markUnknown();
}
