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

    /** What leaves for {@code call} from now on is of {@code attempt}, until {@link #ended}. */
    void began(Call call, OkHttpAttempt attempt) {
        sending.put(call, attempt);
    }

    void ended(Call call) {
        sending.remove(call);
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
