package io.idempotence.client.retry;

/**
 * Whether a request is an attempt of another client half above, in this thread. Feign may send through an OkHttp client that has the client half as well: one of
 * them retries and gives the ID, the upper one.
 */
public final class LayerAbove {
    private static final ThreadLocal<Boolean> SENDS = ThreadLocal.withInitial(() -> false);

    private LayerAbove() {}

    /** Sends a request of an attempt. */
    public interface Sending<T, X extends Exception> {
        T send() throws X;
    }

    /** True within {@link #sends(Sending)}. */
    public static boolean isSending() {
        return SENDS.get();
    }

    public static <T, X extends Exception> T sends(Sending<T, X> request) throws X {
        SENDS.set(true);
        try {
            return request.send();
        } finally {
            SENDS.remove();
        }
    }
}
