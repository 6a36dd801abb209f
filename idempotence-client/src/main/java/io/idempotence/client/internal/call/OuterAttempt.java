package io.idempotence.client.internal.call;

import io.idempotence.client.internal.http.Observation;
import io.idempotence.internal.ThreadBound;
import io.idempotence.internal.ThreadBound.Task;
import org.jspecify.annotations.Nullable;

/**
 * The request that an outer client half is sending in this thread. Feign may send through an OkHttp client that has the client half as
 * well. The outer half gives the ID and retries, so the inner one passes this request through unchanged. Other requests, such as one for a
 * token, are calls of their own.
 *
 * @param seen receives what the inner half observes
 */
public record OuterAttempt(String method, String url, LogicalCall call, Observation seen) {
    private static final ThreadBound<OuterAttempt> SENDING = new ThreadBound<>();

    /** Runs a task while this request is {@link #current} in this thread. If such tasks are nested, the innermost request is current. */
    public <T, X extends Exception> T sends(Task<T, X> request) throws X {
        return SENDING.during(this, request);
    }

    /** The request that this thread is sending; null if there is none. */
    public static @Nullable OuterAttempt current() {
        return SENDING.get();
    }
}
