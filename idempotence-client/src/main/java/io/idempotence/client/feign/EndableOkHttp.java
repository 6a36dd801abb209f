package io.idempotence.client.feign;

import io.idempotence.client.internal.http.Watchdog.Watch;
import io.idempotence.client.internal.scope.ThreadBound;
import java.io.IOException;
import okhttp3.EventListener;
import okhttp3.Interceptor;
import okhttp3.OkHttpClient;
import okhttp3.Protocol;
import okhttp3.Response;

/** Feign's client for OkHttp whose calls can be cancelled. Apart from the others: OkHttp need not be there. */
final class EndableOkHttp {
    private EndableOkHttp() {}

    /** OkHttp asks for a listener where a call is made, in that thread. */
    static Object like(Object client, ThreadBound<Watch> sending) throws ReflectiveOperationException {
        if (!(FeignInternals.field(client, client.getClass(), "delegate") instanceof OkHttpClient delegate)) {
            throw new NoSuchFieldException("delegate is no okhttp3.OkHttpClient");
        }
        EventListener.Factory listeners = delegate.eventListenerFactory();
        OkHttpClient.Builder endable = delegate.newBuilder().eventListenerFactory(call -> {
            Watch watch = sending.get();
            if (watch != null) {
                watch.exit(call::cancel);
            }
            return listeners.create(call);
        });
        endable.interceptors().add(0, EndableOkHttp::underAKnownProtocol);
        return client.getClass().getConstructor(OkHttpClient.class).newInstance(endable.build());
    }

    /** Feign has no name for HTTP/2 with prior knowledge, and takes it for HTTP/1.1, where the end of a response has to be proven. */
    private static Response underAKnownProtocol(Interceptor.Chain chain) throws IOException {
        Response response = chain.proceed(chain.request());
        return response.protocol() == Protocol.H2_PRIOR_KNOWLEDGE
                ? response.newBuilder().protocol(Protocol.HTTP_2).build()
                : response;
    }
}
