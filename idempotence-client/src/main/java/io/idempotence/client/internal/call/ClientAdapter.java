package io.idempotence.client.internal.call;

import io.idempotence.client.internal.http.Observation;
import io.idempotence.http.Refusal;
import java.io.Closeable;
import java.io.IOException;
import java.net.SocketTimeoutException;
import org.jspecify.annotations.Nullable;

/** The adapter of an HTTP client library to the retry loop. */
public interface ClientAdapter {
    /** Sends one request of an attempt and records its end. */
    @Nullable
    Object send(int attempt, Observation seen) throws Throwable;

    /**
     * Waits between two requests, in a thread that may block. False if the caller gave up meanwhile; an interrupted thread keeps its flag.
     */
    default boolean pause(long millis) {
        try {
            Thread.sleep(millis);
            return true;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    /** Releases a value that the caller will not get. It is a response, which is closed. */
    default void discard(@Nullable Object value) throws IOException {
        if (value instanceof Closeable response) {
            response.close();
        }
    }

    /** Whether callers read an exception as "nothing was sent". */
    default boolean meansNotSent(Throwable thrown) {
        return false;
    }

    /** Whether callers get error responses. Otherwise they get the exception of {@link #failureOf} or of the client itself. */
    default boolean returnsErrors() {
        return false;
    }

    /** An error response of this status and headers, without a body; null if the caller cannot get one. */
    default @Nullable Object bodiless(Observation seen) {
        return null;
    }

    /** The exception that represents a returned error response. */
    default Throwable failureOf(Observation seen, @Nullable Object value) {
        return new ErrorResponseException(seen.status());
    }

    /** The exception for an HTTP client that does not end its request, the same as after a read timeout. */
    default Throwable timedOut(SocketTimeoutException cause) {
        return cause;
    }

    /** The exception for a refusal. */
    Throwable refused(Refusal refusal, Observation seen, Throwable cause);

    /** The exception for an unknown outcome. */
    Throwable unknown(Observation seen, Throwable cause);
}
