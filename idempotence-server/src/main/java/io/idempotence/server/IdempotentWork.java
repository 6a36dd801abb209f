package io.idempotence.server;

/**
 * Work that an {@link Idempotence} runs at most once for an ID. It may decide about the ID at run time.
 *
 * @param <T> its result
 */
@FunctionalInterface
public interface IdempotentWork<T> {
    /**
     * Does the work.
     *
     * @param execution its ID and fence; decides about the ID if called
     * @throws Exception if it fails
     */
    T run(IdempotentExecution execution) throws Exception;
}
