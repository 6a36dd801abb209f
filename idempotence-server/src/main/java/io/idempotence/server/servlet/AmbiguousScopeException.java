package io.idempotence.server.servlet;

import io.idempotence.IdempotenceException;

/** The refusal of a request whose scope is not clear, because the header that gives it occurs on several lines. Nothing ran. */
final class AmbiguousScopeException extends IdempotenceException {
    private static final long serialVersionUID = 1L;

    AmbiguousScopeException(String header, int lines) {
        super(header + " occurs on " + lines + " lines; send it once, and let a gateway that sets it replace the"
                + " caller's line instead of adding one");
    }
}
