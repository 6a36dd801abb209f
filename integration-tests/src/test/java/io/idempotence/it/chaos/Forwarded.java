package io.idempotence.it.chaos;

/**
 * A request of a call that was in flight at a provider; by {@link System#nanoTime()}.
 *
 * @param from when the network connected
 * @param to when the provider's response, or its connection, ended
 */
record Forwarded(String call, int provider, long from, long to) {}
