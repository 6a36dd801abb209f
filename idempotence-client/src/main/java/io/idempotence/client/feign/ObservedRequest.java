package io.idempotence.client.feign;

import feign.Request;
import feign.Response;
import io.idempotence.client.IdempotenceScope.Work;
import io.idempotence.client.retry.HttpMethods;
import io.idempotence.client.retry.LayerAbove;
import io.idempotence.client.retry.Observation;
import java.io.IOException;
import java.util.Set;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;

/** One request of an attempt on its way, with the redirects that it meets. */
final class ObservedRequest {
    private static final int MOST_REDIRECTS = 20;

    /** By name, as those who throw them need not be there. */
    private static final Set<String> REFUSALS_TO_SEND = Set.of(
            "io.github.resilience4j.circuitbreaker.CallNotPermittedException",
            "io.github.resilience4j.bulkhead.BulkheadFullException",
            "io.github.resilience4j.ratelimiter.RequestNotPermitted");

    private final Installation installation;
    private final FeignAttempt attempt;
    private final FeignCall call;
    private final Observation seen;
    private final Object httpClient;
    private final Request.Options given;
    private final boolean safe;
    private Request request;
    private Request.Options options;
    private int redirects;

    /** @throws IllegalStateException if the request does not carry its call's ID */
    ObservedRequest(
            Installation installation,
            FeignAttempt attempt,
            Request request,
            Request.Options given,
            Object httpClient) {
        this.installation = installation;
        this.attempt = attempt;
        this.call = attempt.call();
        this.seen = attempt.seen();
        this.httpClient = httpClient;
        this.given = given;
        call.check(request, attempt.prepared() != null);
        this.safe = HttpMethods.isSafe(request.httpMethod().name());
        this.request = request;
        this.options = given;
    }

    /** The request is about to leave; its timeouts are cut to what the call has left. */
    void starts() {
        seen.started();
        options = clip(given, call.logical().deadline().millisLeft(), safe && given.isFollowRedirects());
        if (!KeyHeader.lines(request.headers()).isEmpty()) {
            request = call.outgoing(request, attempt.number(), options.readTimeoutMillis());
        }
    }

    Request request() {
        return request;
    }

    /** A client below that has the client half as well leaves this request alone. */
    <T, X extends Exception> T sends(Work<T, X> sending) throws X {
        return new LayerAbove(request.httpMethod().name(), request.url(), call.logical(), seen).sends(sending);
    }

    Request.Options options() {
        return options;
    }

    /**
     * True if the answer names another address, or another method, and {@link #request()} is now the one for it.
     *
     * @param wanted somebody still waits for what comes of it
     */
    boolean follows(Response response, boolean wanted) {
        if (safe || !given.isFollowRedirects() || redirects == MOST_REDIRECTS) {
            return false;
        }
        Redirect redirect = Redirect.of(request, response).orElse(null);
        if (redirect == null
                || (redirect.repeatsRequest() && redirect.request().url().equals(request.url()))) {
            return false;
        }
        seen.answered(response.status(), response.headers());
        boolean settles = !isInDoubt() || !mayNotSettle(redirect);
        if (!redirect.repeatsRequest()) {
            seen.mayHaveBeenSentBefore();
        }
        if (!settles || !wanted || !call.logical().deadline().outlasts(0)) {
            seen.redirectNotFollowed();
            return false;
        }
        response.close();
        if (redirect.dropsId()) {
            seen.leavesWithoutId();
            Address.of(redirect.request().url())
                    .ifPresent(to ->
                            installation.leaving().leavesWithoutId(to.origin().host()));
        }
        redirects++;
        request = redirect.request();
        return true;
    }

    private boolean isInDoubt() {
        return call.logical().isInDoubt() || seen.hasEarlierDoubt();
    }

    /** Without the ID, it would be carried out twice; and the answer of a GET is the call's only after a redirect that was stored. */
    private boolean mayNotSettle(Redirect redirect) {
        boolean carriesId = !KeyHeader.lines(request.headers()).isEmpty();
        return carriesId && (redirect.repeatsRequest() ? redirect.dropsId() : !seen.isReplayed());
    }

    Response answered(Response response) {
        seen.answered(response.status(), response.headers());
        return ObservedBody.in(response, request, attempt);
    }

    void failed(Throwable thrown) {
        if (thrown instanceof IOException e) {
            byte[] body = request.body();
            if (HttpClients.mayResendSilently(httpClient, body != null && body.length > 0)) {
                seen.mayHaveBeenSentBefore();
            }
            seen.failed(e);
        } else {
            seen.broken(isRefusalToSend(thrown));
        }
    }

    /**
     * What certainly came before the request left. Anything else may have come after: a timeout of whoever waits for the answer
     * in another thread, a retry in the client that gave up, a header of the answer that cannot be parsed.
     */
    static boolean isRefusalToSend(Throwable thrown) {
        return thrown instanceof RejectedExecutionException
                || REFUSALS_TO_SEND.contains(thrown.getClass().getName());
    }

    /** 0 means no limit to HTTP clients, so at least a millisecond stays. */
    static Request.Options clip(Request.Options options, long millisLeft, boolean followRedirects) {
        long connect = clip(options.connectTimeoutMillis(), millisLeft);
        long read = clip(options.readTimeoutMillis(), millisLeft);
        if (connect == options.connectTimeoutMillis()
                && read == options.readTimeoutMillis()
                && followRedirects == options.isFollowRedirects()) {
            return options;
        }
        return new Request.Options(connect, TimeUnit.MILLISECONDS, read, TimeUnit.MILLISECONDS, followRedirects);
    }

    private static long clip(long timeout, long left) {
        return Math.max(1, timeout <= 0 ? left : Math.min(timeout, left));
    }
}
