package io.idempotence.client.internal.http;

/** Whether a request has left, or may have. HTTP clients that can tell have one for each request that is handed to them. */
public final class Departure {
    private volatile boolean left;

    public void left() {
        left = true;
    }

    public boolean hasLeft() {
        return left;
    }
}
