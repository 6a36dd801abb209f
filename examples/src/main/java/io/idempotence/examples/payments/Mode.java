package io.idempotence.examples.payments;

/** One of the two ways to retry that are compared. */
enum Mode {
    /** Feign's own retry against providers without the filter. */
    PLAIN_RETRY("plain retry"),
    /** The client half against providers with the server half. */
    PAIR("the pair");

    private final String label;

    Mode(String label) {
        this.label = label;
    }

    String label() {
        return label;
    }
}
