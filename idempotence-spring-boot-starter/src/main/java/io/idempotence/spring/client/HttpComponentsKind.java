package io.idempotence.spring.client;

import io.idempotence.client.internal.http.ApacheRequests;
import io.idempotence.client.internal.http.Observation;
import io.idempotence.client.internal.http.Watchdog.Watch;
import java.net.URI;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicMarkableReference;
import org.apache.hc.client5.http.HttpRoute;
import org.apache.hc.client5.http.classic.methods.HttpUriRequestBase;
import org.apache.hc.client5.http.config.Configurable;
import org.apache.hc.client5.http.config.ConnectionConfig;
import org.apache.hc.client5.http.config.RequestConfig;
import org.apache.hc.client5.http.impl.classic.RedirectExec;
import org.apache.hc.client5.http.protocol.HttpClientContext;
import org.apache.hc.core5.function.Resolver;
import org.apache.hc.core5.http.Header;
import org.apache.hc.core5.http.HttpHost;
import org.apache.hc.core5.http.HttpResponse;
import org.apache.hc.core5.http.protocol.HttpContext;
import org.apache.hc.core5.util.Timeout;
import org.jspecify.annotations.Nullable;
import org.springframework.http.HttpMethod;
import org.springframework.http.client.ClientHttpRequest;
import org.springframework.http.client.ClientHttpRequestFactory;

/** The kind of Apache HttpClient's request factory. Its requests can be cancelled. It accepts the headers of a response that was cut. */
final class HttpComponentsKind extends RequestFactoryKind {
    private static final String OF_HTTP_CLIENT = "org.apache.hc.client5.http.impl.classic.InternalHttpClient";

    /** Null if this version of HttpClient is unknown. */
    private static final @Nullable ApacheRequests REQUESTS = requests();

    private final boolean redirects;
    private final boolean isOfHttpClient;

    HttpComponentsKind(ClientHttpRequestFactory factory, URI uri) {
        this(factory, uri, SpringInternals.field(factory, "httpClient"));
    }

    private HttpComponentsKind(ClientHttpRequestFactory factory, URI uri, @Nullable Object client) {
        this(factory, uri, client, client instanceof Configurable any ? any.getConfig() : null);
    }

    private HttpComponentsKind(
            ClientHttpRequestFactory factory, URI uri, @Nullable Object client, @Nullable RequestConfig config) {
        super(factory, readTimeoutMillis(factory, uri, client, config));
        this.isOfHttpClient = client != null && client.getClass().getName().equals(OF_HTTP_CLIENT);
        this.redirects = (config == null || config.isRedirectsEnabled())
                && (client == null || !isOfHttpClient || handlesRedirects(client));
    }

    /** Whether the client follows redirects. Its builder may disable that, as Boot's does for {@code dont-follow}; the config does not show it. */
    private static boolean handlesRedirects(Object client) {
        Object chain = SpringInternals.field(client, "execChain");
        for (Object element = chain; element != null; element = SpringInternals.field(element, "next")) {
            if (SpringInternals.field(element, "handler") instanceof RedirectExec) {
                return true;
            }
        }
        return chain == null;
    }

    private static long readTimeoutMillis(
            ClientHttpRequestFactory factory, URI uri, @Nullable Object client, @Nullable RequestConfig config) {
        long ofFactory = timeout(factory);
        if (ofFactory > 0) {
            return ofFactory;
        }
        Timeout timeout = config == null ? null : config.getResponseTimeout();
        if (timeout == null) {
            timeout = ofConnections(client, uri);
        }
        return timeout == null ? 0 : timeout.toMilliseconds();
    }

    /** Where Boot sets its read timeout. Null if there is none, or if it is unknown. */
    @SuppressWarnings("unchecked") // the field's type
    private static @Nullable Timeout ofConnections(@Nullable Object client, URI uri) {
        Object connections = client == null ? null : SpringInternals.field(client, "connManager");
        Object resolver = connections == null ? null : SpringInternals.field(connections, "connectionConfigResolver");
        if (!(resolver instanceof Resolver<?, ?>) || uri.getHost() == null) {
            return null;
        }
        HttpRoute route = new HttpRoute(new HttpHost(uri.getScheme(), uri.getHost(), uri.getPort()));
        ConnectionConfig config = ((Resolver<HttpRoute, ConnectionConfig>) resolver).resolve(route);
        return config == null ? null : config.getSocketTimeout();
    }

    /** A wrapper may send a request anywhere, as one that fails over to another host does. */
    @Override
    boolean sendsOnce(HttpMethod method) {
        return isOfHttpClient && super.sendsOnce(method);
    }

    /** HttpClient sends a request again after a 429 or 503, also a POST, unless its retries are switched off. */
    @Override
    void reportHidden(ClientHttpRequest failed, Observation seen) {
        HttpResponse hidden = SpringInternals.field(failed, "httpContext") instanceof HttpContext any
                ? HttpClientContext.cast(any).getResponse()
                : null;
        if (hidden != null) {
            Map<String, Collection<String>> headers = new LinkedHashMap<>();
            for (Header header : hidden.getHeaders()) {
                headers.computeIfAbsent(header.getName(), name -> new ArrayList<>(1))
                        .add(header.getValue());
            }
            seen.responded(hidden.getCode(), headers);
            seen.started();
        }
    }

    @Override
    boolean provesHeaders() {
        return false;
    }

    @Override
    boolean endsReads() {
        return true;
    }

    @Override
    boolean followsRedirects() {
        return redirects;
    }

    @Override
    void bound(ClientHttpRequest request, Watch watch, long millisLeft) {
        if (SpringInternals.field(request, "httpRequest") instanceof HttpUriRequestBase base) {
            watch.exit(exitOf(base));
        }
        if (SpringInternals.field(request, "httpContext") instanceof HttpContext any) {
            HttpClientContext context = HttpClientContext.cast(any);
            // The application may share the context between calls.
            context.setResponse(null);
            RequestConfig config = context.getRequestConfig();
            context.setRequestConfig((config == null ? RequestConfig.custom() : RequestConfig.copy(config))
                    .setRedirectsEnabled(false)
                    .build());
        }
    }

    /** Cancels the request as its own method does, but more than once, because a connection may have no socket yet. */
    private static Runnable exitOf(HttpUriRequestBase request) {
        if (REQUESTS != null
                && SpringInternals.field(request, "cancellableRef") instanceof AtomicMarkableReference<?> dependency) {
            ApacheRequests.Exit exit = REQUESTS.exit();
            return () -> {
                mark(dependency);
                exit.cancel(dependency.getReference());
            };
        }
        return request::cancel;
    }

    /** HttpClient itself cancels what it gives to the request from then on. */
    private static <T> void mark(AtomicMarkableReference<T> cancelled) {
        while (!cancelled.isMarked()) {
            cancelled.attemptMark(cancelled.getReference(), true);
        }
    }

    private static @Nullable ApacheRequests requests() {
        try {
            return new ApacheRequests(HttpUriRequestBase.class.getClassLoader());
        } catch (ReflectiveOperationException e) {
            return null;
        }
    }
}
