package io.idempotence.spring.client;

import static io.idempotence.http.IdempotenceHeaders.IDEMPOTENCY_KEY;

import io.idempotence.client.internal.call.CallIdentity;
import io.idempotence.client.internal.call.LogicalCall;
import io.idempotence.client.internal.http.Address;
import io.idempotence.client.internal.http.IoFailures;
import io.idempotence.client.internal.http.Observation;
import io.idempotence.client.internal.http.RedirectRule;
import io.idempotence.client.internal.http.Watchdog.Watch;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URI;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpMethod;
import org.springframework.http.client.ClientHttpRequest;
import org.springframework.http.client.ClientHttpResponse;

/**
 * A request just before it leaves, behind all interceptors, with the redirects that follow it. An interceptor that repeats a request makes
 * another one of these for the same attempt.
 */
final class RestExchange implements ClientHttpRequest {
    private final LogicalCall call;
    private final CallIdentity identity;
    private final Observation seen;
    private final Watch watch;
    private final RequestFactoryKind kind;
    private final RedirectRule redirects;
    private final HttpMethod asked;
    private final URI uri;
    private final HttpMethod method;
    private final HttpHeaders headers = new HttpHeaders();
    private final Map<String, Object> attributes = new LinkedHashMap<>();
    private final ByteArrayOutputStream body = new ByteArrayOutputStream();

    /**
     * @param identity the ID of the call
     * @param asked the method of the call. An interceptor may send a request with another one
     */
    RestExchange(
            LogicalCall call,
            CallIdentity identity,
            Observation seen,
            Watch watch,
            RequestFactoryKind kind,
            RedirectRule redirects,
            HttpMethod asked,
            URI uri,
            HttpMethod method) {
        this.call = call;
        this.identity = identity;
        this.seen = seen;
        this.watch = watch;
        this.kind = kind;
        this.redirects = redirects;
        this.asked = asked;
        this.uri = uri;
        this.method = method;
    }

    @Override
    public HttpMethod getMethod() {
        return method;
    }

    @Override
    public URI getURI() {
        return uri;
    }

    @Override
    public Map<String, Object> getAttributes() {
        return attributes;
    }

    @Override
    public HttpHeaders getHeaders() {
        return headers;
    }

    @Override
    public OutputStream getBody() {
        return body;
    }

    @Override
    public ClientHttpResponse execute() throws IOException {
        identity.requireUnchanged(values(headers, IDEMPOTENCY_KEY));
        if (RedirectRule.mayBecomeGet(seen.status()) && !asked.equals(HttpMethod.GET)) {
            // An interceptor sends a request after a redirect. The redirected one may have been executed.
            seen.mayHaveBeenSentBefore();
        }
        ClientHttpResponse response = exchange(uri, method);
        HttpMethod with = method;
        Address from = kind.followsRedirects() ? Address.of(uri.toString()).orElse(null) : null;
        for (int followed = 0; from != null && followed < RedirectRule.MOST; followed++) {
            Address target = target(response, from);
            int status = response.getStatusCode().value();
            boolean repeats = RedirectRule.repeatsRequest(status, with.name());
            boolean unexecuted = RedirectRule.showsNoExecution(status, with.name());
            if (target == null || !mayFollow(from, target, repeats, unexecuted)) {
                return response;
            }
            with = repeats ? with : HttpMethod.GET;
            response.close();
            response = exchange(URI.create(target.toString()), with);
            from = target;
        }
        return response;
    }

    /** The lines of a header. The methods of {@link HttpHeaders} for it differ between the versions of Spring. */
    static List<String> values(HttpHeaders headers, String header) {
        List<String> lines = new ArrayList<>();
        headers.forEach((name, values) -> {
            if (name.equalsIgnoreCase(header)) {
                lines.addAll(values);
            }
        });
        return lines;
    }

    private static @Nullable Address target(ClientHttpResponse response, Address from) throws IOException {
        int status = response.getStatusCode().value();
        boolean redirect = RedirectRule.repeatsRequest(status) || RedirectRule.mayBecomeGet(status);
        String location = redirect ? response.getHeaders().getFirst("Location") : null;
        return location == null ? null : from.resolve(location).orElse(null);
    }

    private boolean mayFollow(Address from, Address target, boolean repeats, boolean unexecuted) {
        if (!from.origin().equals(target.origin())) {
            redirects.notFollowed(target.origin());
            return false;
        }
        boolean toItself = repeats && target.toString().equals(from.toString());
        boolean wanted =
                !Thread.currentThread().isInterrupted() && call.deadline().outlasts(0);
        return RedirectRule.follows(seen, unexecuted, call.isInDoubt(), toItself, wanted);
    }

    /** Host and port. A host with an underscore, such as that of a container, is none to {@link URI}. */
    static String authority(URI uri) {
        String authority = String.valueOf(uri.getRawAuthority());
        return authority.substring(authority.lastIndexOf('@') + 1);
    }

    private ClientHttpResponse exchange(URI to, HttpMethod with) throws IOException {
        if (call.deadline().isOver()) {
            // An interceptor took too long.
            throw seen.notSentInTime();
        }
        if (Thread.currentThread().isInterrupted()) {
            throw seen.notSentByInterrupt();
        }
        boolean asGet = with != method;
        ClientHttpRequest request = kind.within(call.deadline().millisLeft()).createRequest(to, with);
        headers.forEach((name, values) -> {
            if (!asGet || !RedirectRule.isLeftOutOfAGet(name)) {
                request.getHeaders().addAll(name, values);
            }
        });
        request.getAttributes().putAll(attributes);
        if (!asGet) {
            RequestChain.write(body.toByteArray(), request);
        }
        kind.bound(request, watch, call.deadline().millisLeft());
        return send(request);
    }

    private ClientHttpResponse send(ClientHttpRequest request) throws IOException {
        call.countRequest();
        seen.started();
        watch.requestStarts();
        try {
            ClientHttpResponse response = WholeResponse.of(request.execute(), watch, kind);
            seen.responded(response.getStatusCode().value(), WholeResponse.headersOf(response));
            return response;
        } catch (IOException e) {
            throw failed(request, e);
        } catch (RuntimeException | Error e) {
            IOException aborted = IoFailures.ofAbortedRequest(e);
            if (aborted != null) {
                throw failed(request, aborted);
            }
            seen.broken(false);
            throw e;
        }
    }

    /** Returns the exception to throw. */
    private IOException failed(ClientHttpRequest request, IOException thrown) {
        IOException failure = watch.reason(thrown);
        kind.reportHidden(request, seen);
        if (!kind.sendsOnce(request.getMethod())) {
            seen.mayHaveBeenSentBefore();
        }
        if (IoFailures.certainlyNotSent(thrown)) {
            seen.notSent(failure);
        } else {
            seen.failed(failure);
        }
        return failure;
    }
}
