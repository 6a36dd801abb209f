package io.idempotence.client.okhttp;

import java.io.IOException;
import okhttp3.Interceptor;
import okhttp3.Request;
import okhttp3.Response;

/** The last look before a request leaves, and the first at its answer: also for those that OkHttp sends by itself. A network interceptor. */
final class WireInterceptor implements Interceptor {
    @Override
    public Response intercept(Chain chain) throws IOException {
        Request request = chain.request();
        OkHttpAttempt sending = request.tag(OkHttpAttempt.class);
        return sending == null ? chain.proceed(request) : sending.exchange(chain, request);
    }
}
