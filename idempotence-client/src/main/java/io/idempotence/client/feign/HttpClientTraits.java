package io.idempotence.client.feign;

import feign.Request;
import feign.Request.HttpMethod;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The known behaviour of the HTTP client of a Feign client. A wrapper, such as a load balancer's client or one that measures, behaves as
 * the client that it holds, if it holds exactly one. The behaviour of any other client is unknown, and nothing is assumed in its favour.
 */
final class HttpClientTraits {
    static final String OKHTTP = "feign.okhttp.OkHttpClient";
    static final String HC5 = "feign.hc5.ApacheHttp5Client";
    static final String JAVA11 = "feign.http2client.Http2Client";
    private static final String JAVA11_RESENDS = "jdk.httpclient.enableAllMethodRetry";
    private static final String PROXIED = "feign.Client$Proxied";
    private static final Set<String> DEFAULT = Set.of("feign.Client$Default", "feign.DefaultClient");
    private static final Set<String> DEFAULT_ASYNC = Set.of("feign.AsyncClient$Default", "feign.DefaultAsyncClient");
    private static final Set<String> WITH_READS_THAT_END = Set.of(OKHTTP, HC5);
    private static final Set<String> KNOWN = Set.of(OKHTTP, HC5, "feign.hc5.AsyncApacheHttp5Client", JAVA11);

    /** Clients that fail if headers were cut. HttpURLConnection and Apache HttpClient accept the headers that arrived. */
    private static final Set<String> WITH_WHOLE_HEADERS = Set.of(OKHTTP, JAVA11);

    /** Wrappers that pass a request to the client inside exactly once. Any other wrapper may do so again after a failure. */
    private static final Set<String> HANDING_ON_ONCE = Set.of(
            "feign.AsyncClient$Default",
            "feign.DefaultAsyncClient",
            "feign.AsyncClient$Pseudo",
            "feign.micrometer.MeteredClient",
            "feign.micrometer.MeteredAsyncClient",
            "feign.micrometer.MicrometerObservationCapability",
            "feign.metrics4.MeteredClient",
            "feign.metrics4.MeteredAsyncClient",
            "feign.metrics5.MeteredClient",
            "feign.metrics5.MeteredAsyncClient",
            "org.springframework.cloud.openfeign.loadbalancer.FeignBlockingLoadBalancerClient",
            "io.idempotence.spring.client.OnceBalancedClient");

    /** The HTTP clients inside of Feign's that send a request once. Any other may wrap one of these, and send again after a failure. */
    private static final Set<String> SENDING_ONCE = Set.of(
            "org.apache.hc.client5.http.impl.classic.InternalHttpClient",
            "org.apache.hc.client5.http.impl.classic.MinimalHttpClient",
            "org.apache.hc.client5.http.impl.async.InternalHttpAsyncClient",
            "org.apache.hc.client5.http.impl.async.InternalH2AsyncClient",
            "org.apache.hc.client5.http.impl.async.MinimalHttpAsyncClient",
            "org.apache.hc.client5.http.impl.async.MinimalH2AsyncClient",
            "jdk.internal.net.http.HttpClientFacade",
            "io.micrometer.java11.instrument.binder.jdk.MicrometerHttpClient",
            "io.opentelemetry.instrumentation.javahttpclient.internal.OpenTelemetryHttpClient");

    private static final Set<HttpMethod> NEVER_RESENT = Set.of(HttpMethod.POST, HttpMethod.PATCH);
    private static final int MOST_WRAPPERS = 16;

    private final Object client;
    private final Object sending;
    private final boolean handedOnOnce;
    private final boolean throughExecutor;
    private final long redirectingTimeoutMillis;

    /** The way in which an HTTP client follows a redirect. */
    enum RedirectBehaviour {
        /** With the same method and body. */
        SAME_REQUEST,
        WITH_GET,
        /** It reports an error, or its behaviour is unknown. */
        NOT_FOLLOWED
    }

    private HttpClientTraits(Object client, Object sending, boolean handedOnOnce, boolean throughExecutor) {
        this.client = client;
        this.sending = sending;
        this.handedOnOnce = handedOnOnce;
        this.throughExecutor = throughExecutor;
        this.redirectingTimeoutMillis = isJava11() ? CancellableHttp2.redirectingTimeoutMillis(sending) : -1;
    }

    /** @param client the client given to Feign, synchronous or asynchronous */
    static HttpClientTraits of(Object client) {
        Object sending = client;
        Object inside = FeignInternals.clientInside(client);
        boolean handedOnOnce = true;
        boolean throughExecutor = false;
        for (int i = 0; inside != null && i < MOST_WRAPPERS; i++) {
            handedOnOnce &= HANDING_ON_ONCE.contains(declaredName(sending));
            throughExecutor |= isDefaultAsync(sending);
            sending = inside;
            inside = FeignInternals.clientInside(sending);
        }
        return new HttpClientTraits(client, sending, handedOnOnce, throughExecutor);
    }

    /** The name of the class, or of the class that declares the lambda. */
    private static String declaredName(Object client) {
        String name = client.getClass().getName();
        int lambda = name.indexOf("$$Lambda");
        return lambda < 0 ? name : name.substring(0, lambda);
    }

    /** Whether this is Feign's own client over HttpURLConnection, not wrapped. */
    static boolean isDefault(Object client) {
        return DEFAULT.contains(client.getClass().getName());
    }

    /** Whether this is Feign's own asynchronous client, not wrapped. It sends from a thread of an executor. */
    static boolean isDefaultAsync(Object client) {
        return DEFAULT_ASYNC.contains(client.getClass().getName());
    }

    /** Whether a body leaves while it is written, so that HttpURLConnection has none to send again. */
    static boolean streams(Object client) {
        return overHttpUrlConnection(client) != null && !buffers(client);
    }

    /**
     * Whether this is java.net.http. Feign creates such a client, with its own connections, for each connect timeout, so the timeout of a
     * request must not be cut.
     */
    boolean isJava11() {
        return is(JAVA11);
    }

    /**
     * Whether Feign would use a client of java.net.http that follows redirects although the request switches them off. Feign replaces a
     * client with {@code Redirect.NORMAL} only if the connect timeouts differ.
     */
    boolean keepsItsRedirects(long connectMillis) {
        return redirectingTimeoutMillis == connectMillis;
    }

    /** Whether a request may have any connect timeout. An unknown client may be a wrapper of java.net.http. */
    boolean takesAnyConnectTimeout() {
        return overHttpUrlConnection(sending) != null || (isKnown() && !isJava11());
    }

    /**
     * Whether a waiting read ends when the exchange is ended from another thread. The client of java.net.http swallows interrupts, and a
     * wrapper hides the connection.
     */
    boolean endsReads() {
        return WITH_READS_THAT_END.contains(client.getClass().getName());
    }

    /** Whether cut headers cause an {@code IOException}, and not a response with fewer headers. */
    boolean provesHeaders() {
        return WITH_WHOLE_HEADERS.contains(sending.getClass().getName());
    }

    /**
     * Returns how the client itself follows a 301, 302 or 303 after an unsafe request. An unknown client may report an error instead: a GET
     * in place of that error could make a login page look like the result.
     */
    RedirectBehaviour redirectBehaviour(Request request, int status) {
        HttpMethod method = request.httpMethod();
        byte[] body = request.body();
        if (overHttpUrlConnection(sending) != null) {
            if (body != null && body.length > 0 && streams(sending)) {
                return RedirectBehaviour.NOT_FOLLOWED;
            }
            return method == HttpMethod.POST ? RedirectBehaviour.WITH_GET : RedirectBehaviour.SAME_REQUEST;
        }
        if (!isKnown()) {
            return RedirectBehaviour.NOT_FOLLOWED;
        }
        boolean withGet = status == 303 || method == HttpMethod.POST || is(OKHTTP);
        return withGet ? RedirectBehaviour.WITH_GET : RedirectBehaviour.SAME_REQUEST;
    }

    /**
     * Whether a failure to connect proves that nothing was sent. It does if the client never repeats a request by itself, or if its
     * exceptions show a repetition, as OkHttp's do. HttpURLConnection sends a request again when a kept connection breaks, unless it
     * streams a body. Apache HttpClient repeats methods that HTTP defines as idempotent, and java.net.http repeats all of them if
     * configured to. An unknown client may do anything, also inside of a client of Feign.
     */
    boolean sendsOnce(Request request) {
        if (!handedOnOnce) {
            return false;
        }
        if (isOverHttpUrlConnection()) {
            byte[] body = request.body();
            return body != null && body.length > 0 && streams(sending);
        }
        if (is(JAVA11) && System.getProperty(JAVA11_RESENDS) != null) {
            return false;
        }
        return is(OKHTTP) || (isKnown() && NEVER_RESENT.contains(request.httpMethod()) && holdsOneThatSendsOnce());
    }

    /**
     * Whether a refusal that the client throws proves that the request was not sent. The executor of Feign's asynchronous client refuses
     * only in the caller's thread. Other HTTP clients run user code, which may retry around the guard that refuses.
     */
    boolean refusesBeforeSending(Request request) {
        return handedOnOnce && (throughExecutor || isOverHttpUrlConnection() && sendsOnce(request));
    }

    private boolean isOverHttpUrlConnection() {
        return isDefault(sending) || is(PROXIED);
    }

    private boolean is(String name) {
        return sending.getClass().getName().equals(name);
    }

    private boolean isKnown() {
        return KNOWN.contains(sending.getClass().getName());
    }

    /** Whether the client of Feign holds an HTTP client that sends a request once. */
    private boolean holdsOneThatSendsOnce() {
        try {
            Object http = FeignInternals.field(sending, sending.getClass(), "client");
            return http != null && SENDING_ONCE.contains(http.getClass().getName());
        } catch (ReflectiveOperationException e) {
            return false;
        }
    }

    /** Returns the class of Feign's default client, if {@code client} has it or a subclass, such as {@code Client.Proxied}. */
    private static @Nullable Class<?> overHttpUrlConnection(Object client) {
        for (Class<?> type = client.getClass(); type != null; type = type.getSuperclass()) {
            if (DEFAULT.contains(type.getName())) {
                return type;
            }
        }
        return null;
    }

    private static boolean buffers(Object client) {
        Class<?> type = overHttpUrlConnection(client);
        try {
            return type != null && !Boolean.TRUE.equals(FeignInternals.field(client, type, "disableRequestBuffering"));
        } catch (ReflectiveOperationException e) {
            return true;
        }
    }
}
