package io.idempotence.client.internal.call;

import io.idempotence.client.internal.http.Observation;
import io.idempotence.client.internal.scope.ThreadBound;
import io.idempotence.client.internal.scope.ThreadBound.Task;
import org.jspecify.annotations.Nullable;

/**
 * The request of an upper client half that this thread is sending. Feign may send through an OkHttp client that has the client
 * half as well: one of them gives the ID and retries, the upper one, so the lower one leaves that request alone. But no other: a
 * token that is fetched on the way is a call of its own.
 *
 * @param method the request's HTTP method
 * @param url the request's URL
 * @param call the call it is sent for
 * @param seen what becomes of it is written here
 */
public record OuterAttempt(String method, String url, LogicalCall call, Observation seen) {
    private static final ThreadBound<OuterAttempt> SENDING = new ThreadBound<>();

    /**
     * Sends the request, which is {@link #current} meanwhile, in this thread. Where sendings nest, the inner one is until it ends,
     * then the outer one again.
     *
     * @param request sends it
     * @param <T> what it returns
     * @param <X> what it throws
     * @return what {@code request} returns
     * @throws X what {@code request} throws
     */
    public <T, X extends Exception> T sends(Task<T, X> request) throws X {
        return SENDING.during(this, request);
    }

    /**
     * What is being sent.
     *
     * @return null if nothing is, in this thread
     */
    public static @Nullable OuterAttempt current() {
        return SENDING.get();
    }
}
