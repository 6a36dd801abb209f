package io.idempotence.client.okhttp;

import java.net.ProtocolException;

/** The failure of a request that is never sent, because it would be unprotected. OkHttp does not retry a {@link ProtocolException}. */
final class NotSendableException extends ProtocolException {
    private static final long serialVersionUID = 1L;

    NotSendableException(String message) {
        super(message);
    }

    NotSendableException(RuntimeException cause) {
        super(cause.getMessage());
        initCause(cause);
    }
}
