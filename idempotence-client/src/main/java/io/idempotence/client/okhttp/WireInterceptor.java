package io.idempotence.client.okhttp;

import io.idempotence.client.internal.http.RedirectRule;
import java.io.IOException;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import okhttp3.Call;
import okhttp3.Interceptor;
import okhttp3.Request;
import okhttp3.Response;
import org.slf4j.LoggerFactory;

/**
 * The network interceptor that sees each request just before it leaves, and its response first. This includes requests that OkHttp repeats
 * by itself.
 */
final class WireInterceptor implements Interceptor {
    /**
     * The exchanges by call. A tag of the request would not do, because an authenticator or interceptor may make a new request without it.
     */
    private final Map<Call, OkHttpExchange> sending = new ConcurrentHashMap<>();

    private final RedirectRule redirects = new RedirectRule(LoggerFactory.getLogger(IdempotentOkHttp.class));

    /** Sends a request of {@code exchange}. Every request that leaves for the call meanwhile belongs to it, too. */
    Response send(OkHttpExchange exchange, Chain chain, Request request) throws IOException {
        sending.put(chain.call(), exchange);
        try {
            return exchange.send(chain, request);
        } finally {
            sending.remove(chain.call());
        }
    }

    RedirectRule redirects() {
        return redirects;
    }

    @Override
    public Response intercept(Chain chain) throws IOException {
        Request request = chain.request();
        OkHttpExchange exchange = sending.get(chain.call());
        return exchange == null ? chain.proceed(request) : exchange.sendOverConnection(chain, request);
    }
}
