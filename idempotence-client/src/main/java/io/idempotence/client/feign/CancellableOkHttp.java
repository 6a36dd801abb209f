package io.idempotence.client.feign;

import feign.AsyncClient;
import feign.Client;
import feign.Request.Options;
import io.idempotence.client.internal.http.Observation;
import io.idempotence.client.internal.http.SendEvidence;
import io.idempotence.client.internal.http.Watchdog.Watch;
import io.idempotence.client.internal.scope.WeakIdentityMap;
import io.idempotence.internal.ThreadBound;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
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
final class CancellableOkHttp {
    private final ThreadBound<Watch> sending;

    /** By the request that Feign made. All clones of a call have the same one, in whatever thread an interceptor makes them. */
    private final WeakIdentityMap<Request, Watched> requests = new WeakIdentityMap<>();

    /** The timeouts of the request that this thread sends. */
    private final ThreadBound<Options> timeouts = new ThreadBound<>();

    private CancellableOkHttp(ThreadBound<Watch> sending) {
        this.sending = sending;
    }

    private record Watched(SendEvidence evidence, Options timeouts) {
        Chain withTimeouts(Chain chain) {
            return chain.withConnectTimeout(timeouts.connectTimeoutMillis(), TimeUnit.MILLISECONDS)
                    .withReadTimeout(timeouts.readTimeoutMillis(), TimeUnit.MILLISECONDS);
        }
    }

    static OkHttpWithTimeouts like(Object client, ThreadBound<Watch> sending) throws ReflectiveOperationException {
        if (!(FeignInternals.field(client, client.getClass(), "delegate") instanceof OkHttpClient delegate)) {
            throw new NoSuchFieldException("delegate is not an okhttp3.OkHttpClient");
        }
        CancellableOkHttp cancellable = new CancellableOkHttp(sending);
        OkHttpClient http = cancellable.like(delegate);
        Object feign = client.getClass().getConstructor(OkHttpClient.class).newInstance(http);
        return cancellable.new OkHttpWithTimeouts(feign, http);
    }

    /** OkHttp creates the listener in the thread that makes the call. */
    private OkHttpClient like(OkHttpClient delegate) {
        EventListener.Factory listeners = delegate.eventListenerFactory();
        // Redirects are followed here, so that OkHttp follows none.
        OkHttpClient.Builder cancellable = delegate.newBuilder()
                .followRedirects(false)
                .eventListenerFactory(call -> {
                    Watch watch = sending.get();
                    Options options = timeouts.get();
                    if (watch != null && options != null) {
                        watch.exit(call::cancel);
                        SendEvidence evidence = watch.evidence();
                        evidence.observed(hasBody(call.request()));
                        requests.put(call.request(), new Watched(evidence, options));
                    }
                    return listeners.create(call);
                });
        cancellable.interceptors().add(0, this::intercept);
        cancellable.networkInterceptors().add(0, this::exchange);
        return cancellable.build();
    }

    /**
     * Whether the request has a body, so that sending it is always observed. An interceptor may bypass the network interceptors with
     * another kind of transport, but that transport still reads the body.
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
        Watched watched = requests.get(chain.call().request());
        if (watched == null) {
            return underAKnownProtocol(chain.proceed(request));
        }
        RequestBody body = request.body();
        return underAKnownProtocol(watched.withTimeouts(chain)
                .proceed(
                        body == null
                                ? request
                                : request.newBuilder()
                                        .method(request.method(), new ReportingBody(body, watched.evidence))
                                        .build()));
    }

    /** Makes an exchange over an established connection. OkHttp and interceptors may make several, and return a response of their own. */
    private Response exchange(Chain chain) throws IOException {
        Watched watched = requests.get(chain.call().request());
        if (watched == null) {
            return chain.proceed(chain.request());
        }
        watched.evidence.sent();
        Observation seen = watched.evidence.exchanges();
        seen.started();
        try {
            Response response = chain.proceed(chain.request());
            // The headers of an error show whether a gateway or the server half sent it. Others are not looked at.
            seen.responded(
                    response.code(),
                    response.isSuccessful()
                            ? Map.of()
                            : new LinkedHashMap<>(response.headers().toMultimap()));
            return response;
        } catch (IOException e) {
            seen.failed(e);
            throw e;
        }
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

    /**
     * Feign's client with fixed timeouts. Feign copies OkHttp's client for each request whose timeouts differ from those of the client, and
     * the deadline makes them differ each time. So Feign is given the client's own timeouts, and each OkHttp call gets those of its
     * request.
     */
    @SuppressWarnings("unchecked") // Feign's client for OkHttp is both.
    final class OkHttpWithTimeouts implements Client, AsyncClient<Object> {
        private final Client client;
        private final AsyncClient<Object> asyncClient;
        private final Options ofClient;

        private OkHttpWithTimeouts(Object feign, OkHttpClient http) {
            this.client = (Client) feign;
            this.asyncClient = (AsyncClient<Object>) feign;
            this.ofClient = new Options(
                    http.connectTimeoutMillis(),
                    TimeUnit.MILLISECONDS,
                    http.readTimeoutMillis(),
                    TimeUnit.MILLISECONDS,
                    http.followRedirects());
        }

        @Override
        public feign.Response execute(feign.Request request, Options options) throws IOException {
            return timeouts.during(options, () -> client.execute(request, ofClient));
        }

        @Override
        public CompletableFuture<feign.Response> execute(
                feign.Request request, Options options, Optional<Object> context) {
            return timeouts.during(options, () -> asyncClient.execute(request, ofClient, context));
        }
    }

    /** A body that reports when it is written. It consists of bytes, like all bodies of Feign. */
    private static final class ReportingBody extends RequestBody {
        private final RequestBody body;
        private final SendEvidence evidence;

        ReportingBody(RequestBody body, SendEvidence evidence) {
            this.body = body;
            this.evidence = evidence;
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
            evidence.sent();
            body.writeTo(sink);
        }
    }
}
