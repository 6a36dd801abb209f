package io.idempotence.spring.client;

import io.idempotence.client.internal.http.Deadline;
import io.idempotence.client.internal.http.Observation;
import io.idempotence.client.internal.http.Watchdog.Watch;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.http.HttpClient;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;
import org.springframework.http.HttpMethod;
import org.springframework.http.client.ClientHttpRequest;
import org.springframework.http.client.ClientHttpRequestFactory;
import org.springframework.http.client.JdkClientHttpRequestFactory;
import org.springframework.http.client.SimpleClientHttpRequestFactory;
import org.springframework.util.ClassUtils;
import org.springframework.util.ReflectionUtils;

/** The kind of a request factory: how its requests end, and what its HTTP client does by itself. Each subclass is one kind. */
abstract class RequestFactoryKind {
    private static final String HTTP_COMPONENTS =
            "org.springframework.http.client.HttpComponentsClientHttpRequestFactory";
    private static final Set<HttpMethod> NEVER_RESENT = Set.of(HttpMethod.POST, HttpMethod.PATCH);

    private final ClientHttpRequestFactory factory;
    private final long readTimeoutMillis;

    RequestFactoryKind(ClientHttpRequestFactory factory, long readTimeoutMillis) {
        this.factory = factory;
        this.readTimeoutMillis = readTimeoutMillis;
    }

    /** @param uri of a request */
    static RequestFactoryKind of(ClientHttpRequestFactory factory, WithoutRedirects withoutRedirects, URI uri) {
        // Not a subclass, which may do anything.
        if (factory.getClass() == JdkClientHttpRequestFactory.class) {
            return new OfJdk(factory, withoutRedirects);
        }
        if (factory.getClass().getName().equals(HTTP_COMPONENTS)) {
            return new HttpComponentsKind(factory, uri);
        }
        if (factory.getClass() == SimpleClientHttpRequestFactory.class) {
            return new OfUrlConnection(factory);
        }
        return new OfOthers(factory);
    }

    /** The read timeout of the factory; 0 if there is none, or if it is unknown. */
    final long readTimeoutMillis() {
        return readTimeoutMillis;
    }

    /** Whether a failure to connect means that nothing left: the client sends such a request at most once. */
    boolean sendsOnce(HttpMethod method) {
        return NEVER_RESENT.contains(method);
    }

    /** Whether cut headers cause an {@code IOException}, and not a response with fewer headers. */
    boolean provesHeaders() {
        return true;
    }

    /** Whether the body may have other bytes than those that were sent. */
    boolean mayDecompress() {
        return true;
    }

    /** Whether a waiting read of the body ends when the exchange is ended from another thread. */
    boolean endsReads() {
        return false;
    }

    /** Whether redirects of unsafe requests are followed, here, because the client would send the ID to another origin. */
    boolean followsRedirects() {
        return false;
    }

    /** Returns a factory whose requests end in time, and do not follow redirects. */
    ClientHttpRequestFactory within(long millisLeft) {
        return factory;
    }

    /** Cuts the timeouts of a request, and registers what ends it. */
    void bound(ClientHttpRequest request, Watch watch, long millisLeft) {}

    /** Reports a response that the client received before a failure, and did not return because it sent the request again. */
    void reportHidden(ClientHttpRequest failed, Observation seen) {}

    static long timeout(ClientHttpRequestFactory factory) {
        Object timeout = SpringInternals.field(factory, "readTimeout");
        if (timeout instanceof Duration duration) {
            return duration.toMillis();
        }
        return timeout instanceof Number millis ? Math.max(0, millis.longValue()) : 0;
    }

    /**
     * The JDK's client. Its read timeout is the time for a whole exchange, the body included. Of a subclass, which may do anything, only the
     * timeout is known.
     */
    private static final class OfJdk extends RequestFactoryKind {
        private static final String RESENDS = "jdk.httpclient.enableAllMethodRetry";

        /** A time in which the client reports its connect timeout, before Spring cancels the exchange. */
        private static final long MARGIN_MILLIS = 50;

        private final WithoutRedirects withoutRedirects;
        private final HttpClient client;
        private final @Nullable Executor executor;
        private final boolean compresses;

        OfJdk(ClientHttpRequestFactory factory, WithoutRedirects withoutRedirects) {
            super(factory, timeout(factory));
            this.withoutRedirects = withoutRedirects;
            this.client = (HttpClient) SpringInternals.required(factory, "httpClient");
            this.executor = (Executor) SpringInternals.field(factory, "executor");
            this.compresses = Boolean.TRUE.equals(SpringInternals.field(factory, "compression"));
        }

        @Override
        boolean sendsOnce(HttpMethod method) {
            return WithoutRedirects.isOfJdk(client) && super.sendsOnce(method) && System.getProperty(RESENDS) == null;
        }

        @Override
        boolean followsRedirects() {
            return WithoutRedirects.isOfJdk(client) && client.followRedirects() != HttpClient.Redirect.NEVER;
        }

        @Override
        ClientHttpRequestFactory within(long millisLeft) {
            HttpClient direct = withoutRedirects.of(client);
            JdkClientHttpRequestFactory bounded = executor == null
                    ? new JdkClientHttpRequestFactory(direct)
                    : new JdkClientHttpRequestFactory(direct, executor);
            long connect = client.connectTimeout().map(Duration::toMillis).orElse(0L);
            boolean together = connect > 0 && readTimeoutMillis() >= connect;
            long timeout = together ? Math.max(readTimeoutMillis(), connect + MARGIN_MILLIS) : readTimeoutMillis();
            bounded.setReadTimeout(Duration.ofMillis(Deadline.clip(timeout, millisLeft)));
            if (compresses) {
                compress(bounded);
            }
            return bounded;
        }

        /** From Spring 7 on. */
        private static void compress(JdkClientHttpRequestFactory factory) {
            ReflectionUtils.invokeMethod(
                    ClassUtils.getMethod(JdkClientHttpRequestFactory.class, "enableCompression", boolean.class),
                    factory,
                    true);
        }
    }

    /** HttpURLConnection. Spring streams the body, so the JDK does not send it again by itself. */
    private static final class OfUrlConnection extends RequestFactoryKind {
        OfUrlConnection(ClientHttpRequestFactory factory) {
            super(factory, timeout(factory));
        }

        @Override
        boolean provesHeaders() {
            return false;
        }

        @Override
        boolean mayDecompress() {
            return false;
        }

        @Override
        void bound(ClientHttpRequest request, Watch watch, long millisLeft) {
            if (SpringInternals.field(request, "connection") instanceof HttpURLConnection connection) {
                connection.setConnectTimeout((int) Deadline.clip(connection.getConnectTimeout(), millisLeft));
                connection.setReadTimeout((int) Deadline.clip(connection.getReadTimeout(), millisLeft));
                watch.exit(connection::disconnect);
            }
        }
    }

    /** Any other. It may send a request more than once, and ends it by its own timeouts. */
    private static final class OfOthers extends RequestFactoryKind {
        OfOthers(ClientHttpRequestFactory factory) {
            super(factory, timeout(factory));
        }

        @Override
        boolean sendsOnce(HttpMethod method) {
            return false;
        }
    }
}
