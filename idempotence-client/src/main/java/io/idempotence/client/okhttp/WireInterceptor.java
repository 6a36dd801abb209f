package io.idempotence.client.okhttp;

import io.idempotence.client.retry.LeavingWarning;
import java.io.IOException;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import okhttp3.Call;
import okhttp3.Interceptor;
import okhttp3.Request;
import okhttp3.Response;
import org.slf4j.LoggerFactory;

/**
 * The last look before a request leaves, and the first at its answer: also for those that OkHttp sends by itself. A network
 * interceptor.
 */
final class WireInterceptor implements Interceptor {
    /** By call and not by a tag of its request: an authenticator or interceptor may make a new request without it. */
    private final Map<Call, OkHttpAttempt> sending = new ConcurrentHashMap<>();

    private final LeavingWarning leaving = new LeavingWarning(LoggerFactory.getLogger(IdempotentOkHttp.class));

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

    LeavingWarning leaving() {
        return leaving;
    }
}
