package io.idempotence.spring.client;

import static io.idempotence.http.IdempotenceHeaders.IDEMPOTENCY_ATTEMPT;
import static io.idempotence.http.IdempotenceHeaders.IDEMPOTENCY_KEY;
import static io.idempotence.http.IdempotenceHeaders.PREFER;

import io.idempotence.client.internal.call.CallIdentity;
import io.idempotence.client.internal.call.ClientAdapter;
import io.idempotence.client.internal.call.ClientOperation;
import io.idempotence.client.internal.call.LogicalCall;
import io.idempotence.client.internal.http.Deadline;
import io.idempotence.client.internal.http.HeaderLines;
import io.idempotence.client.internal.http.Observation;
import io.idempotence.client.internal.http.RedirectRule;
import io.idempotence.client.internal.http.WaitPreference;
import io.idempotence.client.internal.http.Watchdog;
import io.idempotence.client.internal.http.Watchdog.Watch;
import io.idempotence.http.Refusal;
import java.io.IOException;
import java.net.URI;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpRequest;
import org.springframework.http.client.ClientHttpResponse;
import org.springframework.http.client.support.HttpRequestWrapper;
import org.springframework.web.client.ResourceAccessException;

/** A logical call that is made through Spring's {@code RestClient} or {@code RestTemplate}, with an ID. */
final class RestCall implements ClientAdapter {
    private final ClientOperation operation;
    private final CallIdentity identity;
    private final HttpRequest request;
    private final byte[] body;
    private final RequestChain chain;
    private final WithoutRedirects withoutRedirects;
    private final Watchdog watchdog;
    private final RedirectRule redirects;
    private final LogicalCall logical;

    RestCall(
            ClientOperation operation,
            CallIdentity identity,
            HttpRequest request,
            byte[] body,
            RequestChain chain,
            WithoutRedirects withoutRedirects,
            Watchdog watchdog,
            RedirectRule redirects) {
        this.operation = operation;
        this.identity = identity;
        this.request = request;
        this.body = body;
        this.chain = chain;
        this.withoutRedirects = withoutRedirects;
        this.watchdog = watchdog;
        this.redirects = redirects;
        this.logical = new LogicalCall(operation, identity, operation.config().deadline());
    }

    LogicalCall logical() {
        return logical;
    }

    Duration deadline() {
        return operation.config().deadline();
    }

    private String line() {
        return Objects.requireNonNull(identity.line(), "this call carries an ID");
    }

    @Override
    public Object send(int attempt, Observation seen) throws IOException {
        if (identity.line() == null) {
            identity.decide(
                    request.getMethod().name(),
                    values(IDEMPOTENCY_KEY),
                    request.getMethod().name(),
                    this::pathAndQuery,
                    () -> HeaderLines.isMultipart(values("Content-Type")) ? null : body);
            logical.describe(this::pathAndQuery, () -> Arrays.hashCode(body));
            if (chain.isLeftOutByFurtherRuns() && isSameCall(chain.original())) {
                // Further runs of the chain send the original request, as it is at that time.
                chain.original().getHeaders().set(IDEMPOTENCY_KEY, line());
            }
        }
        RequestFactoryKind kind = RequestFactoryKind.of(chain.factory(), withoutRedirects, request.getURI());
        Watch watch = watchdog.watch(logical.deadline(), Thread.currentThread());
        try {
            ClientHttpResponse response = chain.execute(
                    prepared(attempt, kind),
                    body,
                    (uri, method) -> new RestExchange(
                            logical, identity, seen, watch, kind, redirects, request.getMethod(), uri, method));
            if (seen.hasSeenNothing()) {
                // An interceptor responded by itself.
                seen.responded(response.getStatusCode().value(), WholeResponse.headersOf(response));
                seen.respondedHere();
            }
            return response;
        } catch (IOException | ResourceAccessException e) {
            boolean refused = seen.status() / 100 == 4 || seen.namesRefusal();
            if (seen.status() != 0 && !refused && seen.failure() == null) {
                // The failure is that of an interceptor. It is wrapped, because a ConnectException or an untrusted
                // certificate would read
                // as "nothing was sent".
                seen.failed(new IOException(e));
            }
            throw e;
        } finally {
            watch.ended();
        }
    }

    /** Whether the original request is the same call as this request, by which an interceptor in front has replaced it. */
    private boolean isSameCall(HttpRequest original) {
        return target(request).equals(target(original));
    }

    private HttpRequest prepared(int attempt, RequestFactoryKind kind) {
        HttpHeaders headers = new HttpHeaders();
        request.getHeaders().forEach(headers::addAll);
        headers.set(IDEMPOTENCY_KEY, line());
        headers.set(IDEMPOTENCY_ATTEMPT, Integer.toString(attempt));
        long timeout =
                Deadline.clip(kind.readTimeoutMillis(), logical.deadline().millisLeft());
        WaitPreference.of(operation.config().preferWait(), timeout, values(PREFER))
                .ifPresent(wait -> headers.add(PREFER, wait));
        return new HttpRequestWrapper(request) {
            @Override
            public HttpHeaders getHeaders() {
                return headers;
            }
        };
    }

    private List<String> values(String header) {
        return RestExchange.values(request.getHeaders(), header);
    }

    /** The method and path of a request. A second request with the same ones is the same call, sent again. */
    static String target(HttpRequest request) {
        return request.getMethod() + " " + request.getURI().getRawPath();
    }

    /** The name of the call within a scope: its method and URL, without the query. */
    static String name(HttpRequest request) {
        URI uri = request.getURI();
        return request.getMethod() + " " + uri.getScheme() + "://" + RestExchange.authority(uri) + uri.getRawPath();
    }

    private String pathAndQuery() {
        URI uri = request.getURI();
        return uri.getRawPath() + (uri.getRawQuery() == null ? "" : "?" + uri.getRawQuery());
    }

    @Override
    public boolean returnsErrors() {
        return true;
    }

    @Override
    public Object bodiless(Observation seen) {
        return new BodilessResponse(seen);
    }

    @Override
    public Throwable refused(Refusal refusal, Observation seen, Throwable cause) {
        return new RestRequestRefusedException(refusal, logical.id(), cause);
    }

    @Override
    public Throwable unknown(Observation seen, Throwable cause) {
        return new RestOutcomeUnknownException(
                logical.unknown(name(request)),
                Objects.requireNonNull(logical.id(), "this call has no ID yet"),
                logical.attempts(),
                logical.firstSentAt(),
                cause instanceof IOException failure ? failure : new IOException(cause));
    }
}
