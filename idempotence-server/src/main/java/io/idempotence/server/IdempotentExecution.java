package io.idempotence.server;

import io.idempotence.IdempotenceId;
import io.idempotence.server.storage.StorageKey;

/**
 * The execution a handler is part of. From it the handler learns its ID, its fence and the number of its attempt, and decides at run time
 * what becomes of the ID, over every rule of the policy. The last decision before the handler ends counts. Thread-safe.
 */
public interface IdempotentExecution {
    /**
     * The logical call.
     *
     * @return its ID
     */
    IdempotenceId id();

    /**
     * Where the storage keeps the record of this ID.
     *
     * @return its key
     */
    StorageKey key();

    /**
     * A number that grows with every execution of this ID. Write it with the business data and refuse smaller ones, and a late
     * owner can do no harm there either.
     *
     * @return 1 for the first execution
     */
    long fence();

    /**
     * Which attempt at the call this is, as its caller counts them: {@code Idempotency-Attempt} of a request, {@link
     * IdempotentCall#attempt()} elsewhere. A hint for logs, not to be trusted: the caller chooses it, and a first execution may
     * well be its third attempt.
     *
     * @return 1 for the first attempt, and if the caller sends no number from 1 to 999,999,999
     */
    int attempt();

    /**
     * Whether this execution took the claim over from one that broke off, and so may be the second (T7). If it then fails and its
     * policy gives the ID back, under {@link IdempotencePolicy.OnAbandoned#RE_EXECUTE} the next execution is a take-over as well,
     * because what the first one did is not known still; after a recovery rule has said that nothing was applied it is none. Nor
     * is it after this one's own {@link #release()}, which says that nothing took effect; {@code fence() > 1} says that some
     * execution of this ID began before.
     *
     * @return true after a take-over
     */
    boolean takenOver();

    /** The answer is recorded and replayed, even if it is a failure. */
    void keep();

    /**
     * Nothing took effect, here or, after a take-over, before: the ID is given back, even if the answer is a success. After {@link
     * #tookEffect()} this is a contradiction, and the outcome is marked unknown instead, with a warning in the log.
     */
    void release();

    /**
     * Declares that nothing took effect so far, for example because the transaction was rolled back. Unlike {@link #release()} it
     * decides nothing: where the policy would mark a failure as unknown, it releases the ID instead. A success is kept as ever.
     *
     * <p>A transaction integration calls it after a rollback, {@link #applied()} when it begins another transaction, and {@link
     * #tookEffect()} after a commit. After that it counts no longer.
     */
    void nothingTookEffect();

    /**
     * Declares that something took effect for good, for example because a transaction was committed. Cannot be withdrawn: the ID is never
     * released after it. Whatever would release it (the policy, {@link #release()}, {@link #overtaken()}) marks the outcome as unknown.
     */
    void tookEffect();

    /**
     * Another execution of this ID has taken effect, or this one no longer holds its claim; so this one must take no effect. The
     * ID is given back, and the caller gets the answer of the other one, or is told to ask again, whatever the handler answers.
     */
    void overtaken();

    /**
     * This execution takes effect after all: {@link #release()}, {@link #overtaken()} and {@link #nothingTookEffect()} count no longer,
     * and the policy decides unless there is a later decision. Storages call it, for a transaction that is retried after it has failed; a
     * handler that wants its answer kept calls {@link #keep()}.
     */
    void applied();

    /** Nobody knows whether the operation took effect: later attempts are refused as outcome-unknown (T13). */
    void markUnknown();
}
