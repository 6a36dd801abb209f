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
     * Called at most once for each call. If the call made an attempt, it is called after the last one. If the call made no attempt, it is
     * called only if an earlier call with the same ID is in doubt.
     *
     * @param event the end of the call
     */
    void onCall(IdempotenceClientEvent event);

    /**
     * Called when an attempt has ended, before the wait for the next one. Not called for an attempt whose future its caller
     * cancelled. Does nothing unless overridden.
     *
     * @param event the end of the attempt
     */
    default void onAttempt(IdempotenceClientAttemptEvent event) {}

    /**
     * Called before the first attempt of a call, on the thread that makes the call. The returned listener, and not this one, gets the
     * attempts and the end of the call. Returns this listener unless overridden.
     *
     * @param client the client's name, as in the events
     * @param method the client method, as in the events
     * @return the listener of this call
     */
    default IdempotenceClientListener ofCall(String client, String method) {
        return this;
    }

    /**
     * Called before each request is passed to the HTTP client, on the thread that does so. Does nothing unless overridden.
     *
     * @return restores what this method changed about the thread; run on the same thread when the HTTP client has returned
     */
    default Runnable enterRequest() {
        return () -> {};
    }
}
