package io.idempotence.client.feign;

import feign.Request;
import feign.Response;
import feign.http2client.Http2Client;
import io.idempotence.client.internal.http.Watchdog.Watch;
import io.idempotence.client.internal.scope.WeakIdentityMap;
import io.idempotence.internal.ThreadBound;
import java.io.BufferedInputStream;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Proxy;
import java.net.http.HttpClient;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;

/**
 * A copy of Feign's client for {@code java.net.http} whose compressed responses can be cancelled. Feign reads the beginning of such a body before
 * it returns the response. It is a class of its own because that client may be absent.
 */
final class CancellableHttp2 extends Http2Client {
    private final ThreadBound<Watch> sending;

    /**
     * By request, because the asynchronous client gets its response in another thread. A watch refers to its responses, and so to their
     * requests: an entry that is not removed stays.
     */
    final WeakIdentityMap<Request, Watch> watches = new WeakIdentityMap<>();

    private CancellableHttp2(HttpClient client, ThreadBound<Watch> sending) {
        super(client);
        this.sending = sending;
    }

    static CancellableHttp2 like(Object client, ThreadBound<Watch> sending) throws ReflectiveOperationException {
        if (!(FeignInternals.field(client, client.getClass(), "client") instanceof HttpClient http)) {
            throw new NoSuchFieldException("client is not a java.net.http.HttpClient");
        }
        return new CancellableHttp2(http, sending);
    }

    /** The connect timeout of the JDK's client in {@code client}, if that has one and {@code Redirect.NORMAL}; otherwise -1. */
    static long redirectingTimeoutMillis(Object client) {
        try {
            return FeignInternals.field(client, client.getClass(), "client") instanceof HttpClient http
                            && http.followRedirects() == HttpClient.Redirect.NORMAL
                    ? http.connectTimeout().map(Duration::toMillis).orElse(-1L)
                    : -1;
        } catch (ReflectiveOperationException e) {
            return -1;
        }
    }

    @Override
    public Response execute(Request request, Request.Options options) throws IOException {
        watch(request);
        try {
            return super.execute(request, options);
        } finally {
            watches.remove(request);
        }
    }

    @Override
    public CompletableFuture<Response> execute(Request request, Request.Options options, Optional<Object> context) {
        watch(request);
        try {
            CompletableFuture<Response> response = super.execute(request, options, context);
            // This stage is returned, not the next one: if that were cancelled, it would not run its action.
            response.whenComplete((any, thrown) -> watches.remove(request));
            return response;
        } catch (RuntimeException e) {
            watches.remove(request);
            throw e;
        }
    }

    private void watch(Request request) {
        Watch watch = sending.get();
        if (watch != null) {
            watches.put(request, watch);
        }
    }

    @Override
    protected Response toFeignResponse(Request request, HttpResponse<InputStream> response) {
        Watch watch = watches.get(request);
        if (watch == null || response.headers().firstValue("Content-Encoding").isEmpty()) {
            return super.toFeignResponse(request, response);
        }
        watch.exitByClosing(response.body());
        WatchedBody body = new WatchedBody(response.body(), watch);
        try {
            return super.toFeignResponse(request, with(new BufferedInputStream(body), response));
        } finally {
            body.opened = true;
        }
    }

    @SuppressWarnings("unchecked") // the same type
    private static HttpResponse<InputStream> with(InputStream body, HttpResponse<InputStream> response) {
        return (HttpResponse<InputStream>) Proxy.newProxyInstance(
                CancellableHttp2.class.getClassLoader(),
                new Class<?>[] {HttpResponse.class},
                (proxy, method, args) -> method.getName().equals("body") ? body : method.invoke(response, args));
    }

    /** A body whose reads end with the exchange until Feign has opened it. {@link ObservedBody} does that from then on. */
    private static final class WatchedBody extends FilterInputStream {
        private final Watch watch;
        private volatile boolean opened;

        WatchedBody(InputStream in, Watch watch) {
            super(in);
            this.watch = watch;
        }

        @Override
        public int read(byte[] buffer, int offset, int length) throws IOException {
            return opened ? in.read(buffer, offset, length) : watch.read(in, buffer, offset, length);
        }
    }
}
