package io.idempotence.client.feign;

import io.idempotence.client.internal.http.Departure;
import io.idempotence.client.internal.http.Watchdog.Watch;
import io.idempotence.client.internal.scope.ThreadBound;
import io.idempotence.client.internal.scope.WeakIdentityMap;
import java.io.IOException;
import okhttp3.EventListener;
import okhttp3.Interceptor.Chain;
import okhttp3.MediaType;
import okhttp3.OkHttpClient;
import okhttp3.Protocol;
import okhttp3.Request;
import okhttp3.RequestBody;
import okhttp3.Response;
import okio.BufferedSink;
import org.jspecify.annotations.Nullable;

/**
 * A copy of Feign's client for OkHttp whose calls can be cancelled, and which reports whether a request left. It is a class of its own
 * because OkHttp may be absent.
 */
final class EndableOkHttp {
    /** By the request that Feign made. All clones of a call have the same one, in whatever thread an interceptor makes them. */
    private final WeakIdentityMap<Request, Departure> departures = new WeakIdentityMap<>();

    private EndableOkHttp() {}

    static Object like(Object client, ThreadBound<Watch> sending) throws ReflectiveOperationException {
        if (!(FeignInternals.field(client, client.getClass(), "delegate") instanceof OkHttpClient delegate)) {
            throw new NoSuchFieldException("delegate is not an okhttp3.OkHttpClient");
        }
        return client.getClass()
                .getConstructor(OkHttpClient.class)
                .newInstance(new EndableOkHttp().like(delegate, sending));
    }

    /** OkHttp creates the listener in the thread that makes the call. */
    private OkHttpClient like(OkHttpClient delegate, ThreadBound<Watch> sending) {
        EventListener.Factory listeners = delegate.eventListenerFactory();
        OkHttpClient.Builder endable = delegate.newBuilder().eventListenerFactory(call -> {
            Watch watch = sending.get();
            if (watch != null) {
                watch.exit(call::cancel);
                Departure departure = watch.departure();
                departure.observed(hasBody(call.request()));
                departures.put(call.request(), departure);
            }
            return listeners.create(call);
        });
        endable.interceptors().add(0, this::intercept);
        endable.networkInterceptors().add(0, chain -> {
            Departure departure = departures.get(chain.call().request());
            if (departure != null) {
                departure.left();
            }
            return chain.proceed(chain.request());
        });
        return endable.build();
    }

    /**
     * Whether a request cannot leave unseen. An interceptor may pass it to another kind of transport, past the network interceptors. Such a
     * transport still reads the body.
     */
    private static boolean hasBody(Request request) {
        RequestBody body = request.body();
        try {
            return body != null && body.contentLength() > 0;
        } catch (IOException e) {
            throw new IllegalStateException("the length of a Feign request body is unknown", e);
        }
    }

    private Response intercept(Chain chain) throws IOException {
        Request request = chain.request();
        RequestBody body = request.body();
        Departure departure = departures.get(chain.call().request());
        return underAKnownProtocol(chain.proceed(
                departure == null || body == null
                        ? request
                        : request.newBuilder()
                                .method(request.method(), new ReportingBody(body, departure))
                                .build()));
    }

    /**
     * Replaces HTTP/2 with prior knowledge by HTTP/2. Feign has no constant for the former and would treat it as HTTP/1.1, where the end of
     * a response must be proven.
     */
    private static Response underAKnownProtocol(Response response) {
        return response.protocol() == Protocol.H2_PRIOR_KNOWLEDGE
                ? response.newBuilder().protocol(Protocol.HTTP_2).build()
                : response;
    }

    /** A body that reports when it is written. It consists of bytes, like all bodies of Feign. */
    private static final class ReportingBody extends RequestBody {
        private final RequestBody body;
        private final Departure departure;

        ReportingBody(RequestBody body, Departure departure) {
            this.body = body;
            this.departure = departure;
        }

        @Override
        public @Nullable MediaType contentType() {
            return body.contentType();
        }

        @Override
        public long contentLength() throws IOException {
            return body.contentLength();
        }

        @Override
        public void writeTo(BufferedSink sink) throws IOException {
            departure.left();
            body.writeTo(sink);
        }
    }
}
