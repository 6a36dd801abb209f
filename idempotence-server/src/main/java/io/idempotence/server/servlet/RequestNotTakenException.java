package io.idempotence.server.servlet;

/** The refusal of a request that is too large, or for which no memory is left. Nothing ran. */
final class RequestNotTakenException extends Exception {
    private static final long serialVersionUID = 1L;
    private final boolean tooLarge;

    private RequestNotTakenException(boolean tooLarge) {
        super(tooLarge ? "the request is too large" : "no memory is left for the request", null, false, false);
        this.tooLarge = tooLarge;
    }

    static RequestNotTakenException tooLarge() {
        return new RequestNotTakenException(true);
    }

    static RequestNotTakenException noMemory() {
        return new RequestNotTakenException(false);
    }

    /** Whether the request itself is too large; otherwise all requests together are. */
    boolean isTooLarge() {
        return tooLarge;
    }
}
