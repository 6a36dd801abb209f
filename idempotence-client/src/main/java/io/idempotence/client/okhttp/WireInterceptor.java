package io.idempotence.client.okhttp;

import java.io.IOException;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import okhttp3.Call;
import okhttp3.Interceptor;
import okhttp3.Request;
import okhttp3.Response;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The last look before a request leaves, and the first at its answer: also for those that OkHttp sends by itself. A network
 * interceptor.
 */
final class WireInterceptor implements Interceptor {
    private static final Logger LOG = LoggerFactory.getLogger(IdempotentOkHttp.class);

    /** By call and not by a tag of its request: an authenticator or interceptor may make a new request without it. */
    private final Map<Call, OkHttpAttempt> sending = new ConcurrentHashMap<>();

    private final AtomicBoolean leavingTold = new AtomicBoolean();

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

    void leavesWithoutId(String host) {
        if (leavingTold.compareAndSet(false, true)) {
            LOG.warn(
                    "A call was redirected to another origin, {}, and goes there without its ID: what it does there is NOT"
                            + " protected, and it is not tried again. Give the client the address of that origin",
                    host);
        }
    }
}
