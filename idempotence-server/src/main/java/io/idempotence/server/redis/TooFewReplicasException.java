package io.idempotence.server.redis;

/** A write that too few replicas are known to have. The primary has it. */
final class TooFewReplicasException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final transient Object reply;

    TooFewReplicasException(String message, Object reply) {
        super(message);
        this.reply = reply;
    }

    /** The reply of the script. */
    Object reply() {
        return reply;
    }
}
