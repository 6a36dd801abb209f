package io.idempotence.client.retry;

import io.idempotence.client.IdempotenceScope.Work;
import java.util.function.BiPredicate;

/**
 * The attempt of an upper client half that this thread is sending. Feign may send through an OkHttp client that has the client half as well: one of
 * them gives the ID and retries, the upper one, so the lower one leaves that request alone. But no other: a token that is fetched on the way is a
 * call of its own.
 */
public final class LayerAbove {
    private static final Current<Attempt> SENT = new Current<>();

    private LayerAbove() {}

    private record Attempt(String method, String url) {}

    /**
     * Sends a request of an attempt, which {@link #isSending} knows meanwhile, in this thread. Where sendings nest, it knows the inner one until that
     * ends, then the outer one again.
     *
     * @param method the request's HTTP method
     * @param url the request's URL
     * @return what {@code request} returns
     * @throws X what {@code request} throws
     */
    public static <T, X extends Exception> T sends(String method, String url, Work<T, X> request) throws X {
        return SENT.during(new Attempt(method, url), request);
    }

    /**
     * Whether a request is the one that {@link #sends} is sending in this thread.
     *
     * @param isTheOne compares the request with that one's method and URL
     * @return false also if nothing is being sent
     */
    public static boolean isSending(BiPredicate<String, String> isTheOne) {
        Attempt sent = SENT.get();
        return sent != null && isTheOne.test(sent.method, sent.url);
    }
}
