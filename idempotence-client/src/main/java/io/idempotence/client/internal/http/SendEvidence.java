package io.idempotence.client.internal.http;

/** The evidence of whether a request was sent from this process. All calls that an HTTP client makes for the request, such as a clone, share it. */
public final class SendEvidence {
    private final Observation exchanges = new Observation();
    private volatile boolean observed;
    private volatile boolean mayBeMissed;
    private volatile boolean sent;

    /**
     * Called before an HTTP client makes a call that reports when it is sent.
     *
     * @param always whether every way of sending the call is reported
     */
    public void observed(boolean always) {
        observed = true;
        if (!always) {
            mayBeMissed = true;
        }
    }

    /** Called before the request is written, perhaps again, or when it is known to have been written. */
    public void sent() {
        sent = true;
    }

    /** Whether {@link #sent} was called. Neither value is a proof: a request that certainly was not sent is {@link #wasNotSent}. */
    public boolean mayHaveBeenSent() {
        return sent;
    }

    /** Whether the request certainly was not sent. Also false if the HTTP client does not report what it sends, or not always. */
    public boolean wasNotSent() {
        return observed && !mayBeMissed && !sent;
    }

    /** The exchanges that the HTTP client makes of the request, one after the other, if it reports them. */
    public Observation exchanges() {
        return exchanges;
    }
}
