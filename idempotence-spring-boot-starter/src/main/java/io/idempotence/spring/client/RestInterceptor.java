package io.idempotence.spring.client;

import static io.idempotence.http.IdempotenceHeaders.IDEMPOTENCY_KEY;
import static java.util.Objects.requireNonNull;

import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.internal.call.CallIdentity;
import io.idempotence.client.internal.call.CallLoop;
import io.idempotence.client.internal.call.ClientOperation;
import io.idempotence.client.internal.call.ClientOperations;
import io.idempotence.client.internal.http.CallThreads;
import io.idempotence.client.internal.http.HttpMethods;
import io.idempotence.client.internal.http.HttpOrigin;
import io.idempotence.client.internal.http.RedirectRule;
import io.idempotence.client.internal.http.Watchdog;
import io.idempotence.client.internal.scope.CallScope;
import io.idempotence.client.internal.scope.CallerContext;
import io.idempotence.client.internal.scope.ScopeHistory;
import java.io.IOException;
import java.net.URI;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.core.Ordered;
import org.springframework.http.HttpRequest;
import org.springframework.http.client.ClientHttpRequestExecution;
import org.springframework.http.client.ClientHttpRequestInterceptor;
import org.springframework.http.client.ClientHttpResponse;

/** The interceptor that runs each call with an ID as a logical call. */
final class RestInterceptor implements ClientHttpRequestInterceptor, Ordered {
    private static final Logger LOG = LoggerFactory.getLogger(IdempotentRestClient.class);

    private final IdempotenceClientConfig config;
    private final boolean all;
    private final Watchdog watchdog = new Watchdog(new CallThreads(), LOG);
    private final WithoutRedirects withoutRedirects = new WithoutRedirects();
    private final ClientOperations operations;
    private final RedirectRule redirects = new RedirectRule(LOG);
    private final AtomicBoolean warned = new AtomicBoolean();

    /** @param all whether calls carry an ID that the application did not ask for */
    RestInterceptor(IdempotenceClientConfig config, boolean all) {
        this.config = config;
        this.operations = new ClientOperations(config, LOG);
        this.all = all;
    }

    /** Makes this the first one, unless there is one already. One for all calls replaces the others. */
    void addTo(List<ClientHttpRequestInterceptor> interceptors) {
        if (all) {
            interceptors.removeIf(other -> other instanceof RestInterceptor ours && !ours.all);
        }
        if (interceptors.stream().noneMatch(RestInterceptor.class::isInstance)) {
            interceptors.add(0, this);
        }
    }

    /** A {@code RestTemplate} sorts its interceptors. */
    @Override
    public int getOrder() {
        return HIGHEST_PRECEDENCE;
    }

    @Override
    public ClientHttpResponse intercept(HttpRequest request, byte[] body, ClientHttpRequestExecution execution)
            throws IOException {
        HttpServiceCall service = HttpServiceCall.of(request);
        if (service == null) {
            return intercept(request, body, execution, null);
        }
        service.intercepted();
        return HttpServiceCall.<ClientHttpResponse, IOException>taken(
                () -> intercept(request, body, execution, service));
    }

    private ClientHttpResponse intercept(
            HttpRequest request, byte[] body, ClientHttpRequestExecution execution, @Nullable HttpServiceCall service)
            throws IOException {
        ClientOperation operation = operation(request, service);
        boolean given = request.getHeaders().getFirst(IDEMPOTENCY_KEY) != null;
        boolean asked = all || given || service != null || isAskedFor(request, operation);
        if (!asked || !CallIdentity.carriesId(operation, request.getMethod().name(), given)) {
            // Calls made on the way are outside of the caller's scope.
            return CallScope.<ClientHttpResponse, IOException>outside(() -> execution.execute(request, body));
        }
        RequestChain chain = RequestChain.of(this, request, execution);
        RestCall call = new RestCall(
                operation,
                identity(operation, request, body, chain, service),
                request,
                body,
                chain,
                withoutRedirects,
                watchdog,
                redirects);
        if (chain.isLeftOutByFurtherRuns() && warned.compareAndSet(false, true)) {
            LOG.warn(
                    "An interceptor runs before the one of IdempotentRestClient. On Spring 6 it must not send a request twice: the"
                            + " second one may carry no ID, no retry follows, and its end hides an unknown outcome of the first."
                            + " If it does, put it behind");
        }
        try {
            if (service != null) {
                service.began(call);
            }
            return CallScope.<ClientHttpResponse, Throwable>outside(
                    () -> (ClientHttpResponse) requireNonNull(CallLoop.run(call.logical(), operation.retry(), call)));
        } catch (IOException | RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new IOException(e);
        } finally {
            if (service != null) {
                service.ended(call);
            }
        }
    }

    /** @param service the call that the request belongs to, perhaps of another thread; null if there is none */
    private static CallIdentity identity(
            ClientOperation operation,
            HttpRequest request,
            byte[] body,
            RequestChain chain,
            @Nullable HttpServiceCall service) {
        CallerContext current = CallerContext.current();
        CallerContext caller = service == null ? current : current.or(service.caller());
        SentCall call = SentCall.of(
                request,
                chain.original(),
                service == null ? ScopeHistory::ofOneCall : () -> service.history(request, body));
        return new CallIdentity(operation, () -> RestCall.name(call.request()), caller, call.history());
    }

    /**
     * A call, kept in the request that its client made.
     *
     * <p>An interceptor in front may send the request more than once. With the same method and path that is the same logical call, sent
     * again, whatever the host and the query. Any other request, for example for a token, is a call of its own.
     *
     * @param request the first one
     */
    private record SentCall(HttpRequest request, ScopeHistory history) {
        /** @param made makes the history of a call that is new */
        static SentCall of(HttpRequest request, HttpRequest original, Supplier<ScopeHistory> made) {
            String name = SentCall.class.getName() + " " + RestCall.target(request) + " "
                    + request.getHeaders().getFirst(IDEMPOTENCY_KEY);
            // An interceptor may send in two threads.
            synchronized (original) {
                return (SentCall)
                        original.getAttributes().computeIfAbsent(name, absent -> new SentCall(request, made.get()));
            }
        }
    }

    private boolean isAskedFor(HttpRequest request, ClientOperation operation) {
        return CallScope.current() != null
                || Boolean.TRUE.equals(request.getAttributes().get(CallAttributes.IDEMPOTENT))
                || config.isNamed(operation.client(), operation.method());
    }

    private ClientOperation operation(HttpRequest request, @Nullable HttpServiceCall service) {
        Map<String, Object> attributes = request.getAttributes();
        String client = attributes.get(CallAttributes.CLIENT) instanceof String name
                ? name
                : service != null && service.group() != null ? service.group() : authority(request.getURI());
        String method = attributes.get(CallAttributes.METHOD) instanceof String name
                ? name
                : service != null
                        ? service.method()
                        : HttpMethods.label(request.getMethod().name());
        Boolean annotated = attributes.get(CallAttributes.IDEMPOTENT) instanceof Boolean value
                ? value
                : service != null ? service.annotated() : null;
        return operations.of(client, method, annotated);
    }

    /** The name of a client that has no other. */
    static String authority(URI uri) {
        String host = uri.getHost() == null ? String.valueOf(uri.getAuthority()) : uri.getHost();
        return new HttpOrigin(String.valueOf(uri.getScheme()), host, uri.getPort()).authority();
    }
}
