package io.idempotence.client.internal.http;

/** The evidence of whether a request was sent from this process. All calls that an HTTP client makes for the request, such as a clone, share it. */
public final class Departure {
    private final Observation exchanges = new Observation();
    private volatile boolean observed;
    private volatile boolean mayBeMissed;
    private volatile boolean left;

    /**
     * Called before an HTTP client makes a call that reports when it leaves.
     *
     * @param always whether every way of sending the call is reported
     */
    public void observed(boolean always) {
        observed = true;
        if (!always) {
            mayBeMissed = true;
        }
    }

    public void left() {
        left = true;
    }

    public boolean hasLeft() {
        return left;
    }

    /** Whether the request certainly was not sent. Also false if the HTTP client does not report what it sends, or not always. */
    public boolean hasStayed() {
        return observed && !mayBeMissed && !left;
    }

    /** The exchanges that the HTTP client makes of the request, one after the other, if it reports them. */
    public Observation exchanges() {
        return exchanges;
    }
}
