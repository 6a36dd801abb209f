package io.idempotence.it.behaviour;

import java.net.SocketTimeoutException;
import java.net.http.HttpTimeoutException;

/** Descriptions of how calls end, as texts that can be compared. */
public final class Endings {
    private Endings() {}

    /**
     * Types and messages of an exception, its causes and what it suppressed. A read timeout is one regardless of what notices it first: the
     * socket, or a timer of the client.
     */
    public static String of(Throwable thrown) {
        if (thrown instanceof SocketTimeoutException || thrown instanceof HttpTimeoutException) {
            return thrown.getClass().getName();
        }
        StringBuilder text = new StringBuilder(thrown.getClass().getName() + ": " + thrown.getMessage());
        for (Throwable suppressed : thrown.getSuppressed()) {
            text.append(" [suppressed ").append(of(suppressed)).append(']');
        }
        Throwable cause = thrown.getCause();
        return cause == null ? text.toString() : text + " <- " + of(cause);
    }

    /** A text, short enough to read in a failed comparison. */
    public static String of(String body) {
        return body.length() < 1000 ? body : body.length() + " characters, " + body.hashCode();
    }
}
