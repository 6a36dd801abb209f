package io.idempotence.client.okhttp;

import java.io.IOException;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import okhttp3.Call;
import okhttp3.HttpUrl;
import okhttp3.Interceptor;
import okhttp3.Request;
import okhttp3.Response;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The last look before a request leaves, and the first at its response: also for those that OkHttp sends by itself. A network
 * interceptor.
 */
final class WireInterceptor implements Interceptor {
    private static final Logger LOG = LoggerFactory.getLogger(IdempotentOkHttp.class);

    /** By call and not by a tag of its request: an authenticator or interceptor may make a new request without it. */
    private final Map<Call, OkHttpAttempt> sending = new ConcurrentHashMap<>();

    private final AtomicBoolean told = new AtomicBoolean();

    /** Sends a request of {@code attempt}. What leaves for the call meanwhile is of that attempt, too. */
    Response send(OkHttpAttempt attempt, Chain chain, Request request) throws IOException {
        sending.put(chain.call(), attempt);
        try {
            return attempt.send(chain, request);
        } finally {
            sending.remove(chain.call());
        }
    }

    @Override
    public Response intercept(Chain chain) throws IOException {
        Request request = chain.request();
        OkHttpAttempt attempt = sending.get(chain.call());
        return attempt == null ? chain.proceed(request) : attempt.exchange(chain, request);
    }

    /** Tells an operator, once. */
    void redirectNotFollowed(HttpUrl target) {
        if (told.compareAndSet(false, true)) {
            LOG.warn(
                    "A call with an ID was redirected to another origin, {}://{}:{}. The redirect is its response: an ID is only"
                            + " sent to the origin that the call was made to. Give the client the address of that origin",
                    target.scheme(),
                    target.host(),
                    target.port());
        }
    }
}
