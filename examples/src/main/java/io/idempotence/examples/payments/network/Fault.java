package io.idempotence.examples.payments.network;

/** A fault of the network at one request. */
public enum Fault {
    /** Nothing: request and response pass. */
    NONE("none", 62),
    /** The provider makes the payment; instead of its response the consumer gets a connection reset. */
    RESPONSE_LOST("response lost", 8),
    /** The provider makes the payment; its response comes after the consumer's read timeout. */
    RESPONSE_LATE("response late", 8),
    /** The connection is reset before the request reaches the provider. */
    RESET_BEFORE("reset before", 8),
    /** The connection is reset as soon as the request has reached the provider. */
    RESET_AFTER("reset after", 8),
    /** The handler takes longer than two attempts of the consumer. Comes in pairs: see {@link FaultPlan}. */
    SLOW_HANDLER("slow handler", 6);

    private final String label;
    private final int percent;

    Fault(String label, int percent) {
        this.label = label;
        this.percent = percent;
    }

    /**
     * Its name for people.
     *
     * @return lower case words
     */
    public String label() {
        return label;
    }

    /**
     * How many requests of a hundred it hits.
     *
     * @return all of them together make 100
     */
    public int percent() {
        return percent;
    }
}
