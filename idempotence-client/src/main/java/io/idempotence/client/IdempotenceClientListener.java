package io.idempotence.client;

/**
 * Hears how every logical call ended, and every attempt of it.
 *
 * <p>Called on the thread that ended the call or the attempt. It must be thread-safe and fast. An exception it throws is logged
 * and changes nothing.
 */
@FunctionalInterface
public interface IdempotenceClientListener {
    /**
     * A logical call ended. Once for each call that reached an attempt, after its last one, and for one that reached none while
     * an earlier call with its ID is in doubt.
     *
     * @param event how
     */
    void onCall(IdempotenceClientEvent event);

    /**
     * An attempt ended, before the wait for the next one. Not for one whose caller cancelled it.
     *
     * @param event what it came to
     */
    default void onAttempt(IdempotenceAttemptEvent event) {}
}
