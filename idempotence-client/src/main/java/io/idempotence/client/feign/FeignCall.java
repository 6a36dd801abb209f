package io.idempotence.client.feign;

import static io.idempotence.http.IdempotenceHeaders.IDEMPOTENCY_ATTEMPT;
import static io.idempotence.http.IdempotenceHeaders.PREFER;

import feign.MethodMetadata;
import feign.Request;
import feign.Request.HttpMethod;
import feign.RequestTemplate;
import io.idempotence.IdempotenceId;
import io.idempotence.client.internal.call.CallIdentity;
import io.idempotence.client.internal.call.ClientOperation;
import io.idempotence.client.internal.call.LogicalCall;
import io.idempotence.client.internal.http.Address;
import io.idempotence.client.internal.http.HeaderLines;
import io.idempotence.client.internal.http.Observation;
import io.idempotence.client.internal.http.WaitPreference;
import io.idempotence.client.internal.scope.CallerContext;
import io.idempotence.client.internal.scope.ScopeHistory;
import java.nio.charset.Charset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/** A logical call that is made through Feign. It keeps the first request, so that the later ones are equal to it. */
final class FeignCall {
    private static final String CONTENT_TYPE = "Content-Type";

    private final ClientMethod method;
    private final CallIdentity identity;
    private final LogicalCall logical;
    private final Thread opener = Thread.currentThread();
    private volatile boolean ranElsewhere;
    /** The template of the first request that an encoder wrote a body to; null before that. */
    private volatile @Nullable RequestTemplate encoded;

    private final ReentrantLock encoding = new ReentrantLock();

    private final AtomicReference<@Nullable FirstRequest> first = new AtomicReference<>();
    /** The content type of the first request that left; null before that. */
    private volatile @Nullable List<String> contentType;

    private volatile @Nullable Request lastRequest;

    private volatile boolean reached;

    private volatile @Nullable CompletableFuture<?> lastRun;

    FeignCall(ClientMethod method) {
        ClientOperation operation = method.operation();
        this.method = method;
        // Created where the call opens, because the attempts may run on another thread.
        this.identity = new CallIdentity(
                operation,
                () -> operation.method() + " of " + operation.client(),
                CallerContext.current(),
                ScopeHistory.ofOneCall());
        this.logical = new LogicalCall(operation, identity, operation.config().deadline());
    }

    private record FirstRequest(
            byte @Nullable [] body, @Nullable Charset charset) {}

    ClientMethod method() {
        return method;
    }

    LogicalCall logical() {
        return logical;
    }

    /** Called when a run of the retry loop begins in this thread. */
    void runs() {
        if (Thread.currentThread() != opener) {
            ranElsewhere = true;
        }
    }

    /** Called when a run of the retry loop has begun that ends with {@code future}. */
    CompletableFuture<?> runsUntil(CompletableFuture<?> future) {
        lastRun = future;
        return future;
    }

    /** Whether a layer above the retry loop made {@code future}. */
    boolean isOfALayer(CompletableFuture<?> future) {
        return method.returnsFuture() && future != lastRun;
    }

    /** Called when attempts may follow after the proxy has returned. */
    void outlivesItsProxy() {
        ranElsewhere = true;
    }

    /** Called when the proxy returns. False if a handler may have work left in another thread. */
    boolean isOver() {
        return !ranElsewhere && logical.attempts() > 0;
    }

    /** Whether this call carries an ID. Otherwise it behaves as without this library. */
    boolean carriesId() {
        return identity.carriesId();
    }

    @Nullable
    Request lastRequest() {
        return lastRequest;
    }

    /**
     * Writes the body of a request, before the interceptors see it. Every request gets the body of the first one: an encoder may write a
     * different body each time, and may be unable to read its object again. If two runs encode at the same time, the second one waits for
     * the body of the first, unless the call carries no ID.
     *
     * @param encoder writes to {@code template}
     */
    void encode(RequestTemplate template, Runnable encoder) {
        // As far as is known before the interceptors of the first request.
        if (!identity.willCarryId(template.method())) {
            write(template, encoder);
            return;
        }
        encoding.lock();
        try {
            RequestTemplate before = encoded;
            if (before != null && before.url().equals(template.url())) {
                copyEncoded(before, template);
            } else {
                write(template, encoder);
            }
        } finally {
            encoding.unlock();
        }
    }

    private void write(RequestTemplate template, Runnable encoder) {
        encoder.run();
        if (template.body() != null) {
            encoded = template;
        }
    }

    private static void copyEncoded(RequestTemplate from, RequestTemplate to) {
        Map<String, Collection<String>> declared = to.headers();
        Map<String, Collection<String>> written = from.headers();
        declared.keySet().stream().filter(name -> !written.containsKey(name)).forEach(to::removeHeader);
        written.forEach((name, lines) -> {
            if (!lines.equals(declared.get(name))) {
                to.removeHeader(name);
                to.header(name, lines);
            }
        });
        to.body(from.body(), from.requestCharset());
    }

    /** Writes the ID on a request of this call, and makes it equal to the first request where that matters. */
    void prepare(RequestTemplate template) {
        reached = true;
        // Feign copies all headers at each access, which costs as much as the ID.
        Map<String, Collection<String>> headers = method.mayBeGivenAnId(template) ? template.headers() : Map.of();
        String line = identity.decide(
                template.method(),
                FeignHeaders.idIn(headers),
                method.configKey(),
                template::url,
                () -> isMultipart(template) ? null : template.body());
        FirstRequest request = first.get();
        if (request == null) {
            first.compareAndSet(null, new FirstRequest(template.body(), template.requestCharset()));
        }
        if (line == null) {
            if (method.operation().config().enabled()) {
                FeignHeaders.removeId(template, headers);
            }
            return;
        }
        FeignHeaders.setId(template, headers, line);
        List<String> sent = contentType;
        if (request != null && sent != null) {
            freeze(template, request, sent);
        }
    }

    /** Checks, before a request leaves, that it carries the ID of this call and no other (promise P1). */
    void check(Request request, boolean prepared) {
        if (!prepared) {
            throw new IllegalStateException(
                    "the interceptor of IdempotentFeign is gone, so this call would be unprotected;"
                            + " call IdempotentFeign.install(builder) after builder.requestInterceptors(...)");
        }
        identity.requireUnchanged(FeignHeaders.idIn(request.headers()));
        if (contentType == null) {
            contentType = HeaderLines.of(request.headers(), CONTENT_TYPE);
            logical.describe(() -> pathAndQuery(request.url()), () -> Arrays.hashCode(request.body()));
        }
        lastRequest = request;
        logical.countRequest();
    }

    /** Without the address, because a target may choose another host for each request. */
    private static String pathAndQuery(String url) {
        return Address.of(url).map(Address::pathAndQuery).orElse(url);
    }

    /** Called when an encoder or an earlier interceptor failed. An earlier call in doubt stays in doubt. */
    void notMade() {
        MethodMetadata declared = method.declared();
        if (reached || declared == null) {
            return;
        }
        RequestTemplate template = declared.template();
        boolean own = !FeignHeaders.idIn(template.headers()).isEmpty();
        identity.keepDoubt(template.method(), own, List.of());
    }

    /** Returns the exception for an unknown outcome. */
    Throwable unknown(Observation seen, Throwable cause) {
        IdempotenceId id = logical.id();
        if (id == null) {
            throw new IllegalStateException(
                    "the outcome of a call without an ID is unknown; expected a call with an ID");
        }
        Request request = lastRequest != null ? lastRequest : declaredRequest();
        if (request == null) {
            return cause;
        }
        return new FeignOutcomeUnknownException(
                seen.status() == 0 ? -1 : seen.status(),
                logical.unknown(method.configKey()),
                id,
                logical.attempts(),
                logical.firstSentAt(),
                request,
                cause);
    }

    /** Returns a request for the exception of a call in doubt that could not be made again. */
    private @Nullable Request declaredRequest() {
        MethodMetadata declared = method.declared();
        if (declared == null) {
            return null;
        }
        RequestTemplate template = declared.template();
        return Request.create(HttpMethod.valueOf(template.method()), template.url(), Map.of(), null, null, template);
    }

    /** A multipart body has a random boundary. */
    private static boolean isMultipart(RequestTemplate template) {
        return HeaderLines.isMultipart(HeaderLines.of(template.headers(), CONTENT_TYPE));
    }

    /**
     * Gives a request the body and content type of the first one. A body that contains a time or a random boundary would otherwise make it
     * another request under the same ID: 422.
     */
    private static void freeze(RequestTemplate template, FirstRequest request, List<String> contentType) {
        if (request.body != null) {
            template.body(request.body, request.charset);
        }
        if (!contentType.isEmpty()) {
            template.removeHeader(CONTENT_TYPE);
            template.headerLiteral(CONTENT_TYPE, contentType);
        }
    }

    /**
     * Returns the request to send, if it carries the ID. It has the number of its attempt, and asks the server to hold it while the first
     * attempt runs, for as long as this client waits.
     */
    Request outgoing(Request request, int attempt, long readTimeoutMillis) {
        Map<String, Collection<String>> headers = FeignHeaders.copyOf(request.headers());
        headers.put(IDEMPOTENCY_ATTEMPT, List.of(Integer.toString(attempt)));
        List<String> preferences = new ArrayList<>(headers.getOrDefault(PREFER, List.of()));
        WaitPreference.of(method.operation().config().preferWait(), readTimeoutMillis, preferences)
                .ifPresent(preferences::add);
        if (!preferences.isEmpty()) {
            headers.put(PREFER, preferences);
        }
        return Request.create(
                request.httpMethod(),
                request.url(),
                headers,
                request.body(),
                request.charset(),
                request.requestTemplate());
    }
}
