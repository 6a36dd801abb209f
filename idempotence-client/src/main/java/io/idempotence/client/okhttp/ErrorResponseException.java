package io.idempotence.client.okhttp;

import java.io.IOException;

/** Stands for an error answer where a failure is needed. */
final class ErrorAnswerException extends IOException {
    private static final long serialVersionUID = 1L;

    ErrorAnswerException(int status) {
        super("the answer was HTTP " + status);
    }
}
