package io.idempotence.client.internal.call;

import java.io.IOException;

/** A substitute for an error response where an exception is needed. */
final class ErrorResponseException extends IOException {
    private static final long serialVersionUID = 1L;

    ErrorResponseException(int status) {
        super("the response was HTTP " + status);
    }
}
