package io.idempotence.client;

/**
 * Hears how every logical call ended.
 *
 * <p>Called once per logical call that reached an attempt, on the thread that ended it, after the last attempt. It must be
 * thread-safe and fast. An exception it throws is logged and changes nothing.
 */
@FunctionalInterface
public interface IdempotenceClientListener {
    /**
     * A logical call ended.
     *
     * @param event how
     */
    void onCall(IdempotenceClientEvent event);
}
