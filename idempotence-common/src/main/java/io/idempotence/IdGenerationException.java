package io.idempotence;

/** A failure to make an ID that is certain to be new: the clock stepped back too far, or is outside the range of the ID's bits. */
public final class IdGenerationException extends IdempotenceException {
    private static final long serialVersionUID = 1L;

    IdGenerationException(String message) {
        super(message);
    }
}
