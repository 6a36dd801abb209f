package io.idempotence.client;

/**
 * A listener for the ends of logical calls and of their attempts.
 *
 * <p>Called on the thread that ended the call or the attempt. It must be thread-safe and fast. An exception that it throws is logged and
 * does not affect the call.
 */
@FunctionalInterface
public interface IdempotenceClientListener {
    /**
     * Called once for each call that reached an attempt, after its last one, and for a call that reached none while an earlier call with
     * its ID is in doubt.
     *
     * @param event the end of the call
     */
    void onCall(IdempotenceClientEvent event);

    /**
     * Called when an attempt has ended, before the wait for the next one. Not called for an attempt that its caller cancelled. Does nothing
     * unless overridden.
     *
     * @param event the end of the attempt
     */
    default void onAttempt(IdempotenceAttemptEvent event) {}
}
