package io.idempotence.examples.orders.network;

/** A fault of the next payment request. */
public enum Fault {
    NONE("Nothing", "The request and its response pass."),
    LOSE_RESPONSE(
            "Lose the response", "The payment is made. The shop gets a broken connection instead of the response."),
    LOSE_ALL_RESPONSES(
            "Lose every response",
            "As long as you leave it on, each payment request arrives and each response is lost. The shop ends in doubt."),
    LOSE_REQUEST("Lose the request", "The connection breaks before the request reaches the payment service."),
    DELAY_RESPONSE(
            "Delay the response", "The payment is made, and its response arrives after the shop's read timeout."),
    FAIL_AFTER_COMMIT(
            "Fail after the commit",
            "The payment is committed, then the handler throws. The ID becomes unknown: an operator decides in the console.");

    private final String label;
    private final String explanation;

    Fault(String label, String explanation) {
        this.label = label;
        this.explanation = explanation;
    }

    public String label() {
        return label;
    }

    public String explanation() {
        return explanation;
    }

    boolean staysOn() {
        return this == LOSE_ALL_RESPONSES;
    }
}
