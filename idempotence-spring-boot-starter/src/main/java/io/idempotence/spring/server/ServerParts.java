package io.idempotence.spring.server;

/** The parts that the server half of this application uses. */
record ServerParts(ChosenStorage storage, Namespace namespace) {
    /** For the log. */
    String described() {
        return "records in " + storage.reason() + "; namespace '" + namespace.name() + "' (" + namespace.reason() + ")";
    }
}
