package io.idempotence.client.internal.call;

import io.idempotence.client.internal.http.Observation;
import io.idempotence.http.Refusal;
import java.net.SocketTimeoutException;
import org.jspecify.annotations.Nullable;

/** What an HTTP client library adds to the retry loop. */
public interface ClientAdapter {
    /** Sends one request of an attempt and writes down what it sees. */
    @Nullable
    Object send(int attempt, Observation seen) throws Throwable;

    /** Waits between two requests, in a thread that may. False if the caller gave up meanwhile; an interrupted thread keeps its flag. */
    default boolean pause(long millis) {
        try {
            Thread.sleep(millis);
            return true;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    /** Lets go of a value that the caller will not get. */
    void discard(@Nullable Object value);

    /** An exception that stands for a returned error response. */
    Throwable failureOf(@Nullable Object value);

    /** The exception for an HTTP client that does not end its request: the one after a read timeout. */
    default Throwable timedOut(SocketTimeoutException cause) {
        return cause;
    }

    /** The exception for a refusal. */
    Throwable refused(Refusal refusal, Observation seen, Throwable cause);

    /** The exception for an outcome that is not known. */
    Throwable unknown(Observation seen, Throwable cause);
}
