package io.idempotence.server.redis;

/** A failure of a call that has certainly written nothing: it was never sent, or Redis replied with an error. */
final class NothingWrittenException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final RuntimeException reason;

    NothingWrittenException(RuntimeException reason) {
        super(reason);
        this.reason = reason;
    }

    /** The driver's exception. */
    RuntimeException reason() {
        return reason;
    }
}
