package io.idempotence.client.feign;

import feign.Request;
import feign.Response;
import io.idempotence.client.internal.call.LayerFailures;
import io.idempotence.client.internal.call.OuterAttempt;
import io.idempotence.client.internal.http.Deadline;
import io.idempotence.client.internal.http.IoFailures;
import io.idempotence.client.internal.http.Observation;
import io.idempotence.client.internal.http.RedirectRule;
import io.idempotence.client.internal.http.SendEvidence;
import io.idempotence.client.internal.http.Watchdog.Watch;
import io.idempotence.internal.ThreadBound.Task;
import java.io.IOException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** A request of an attempt, with the redirects that follow it. A request without an ID is not changed. */
final class FeignExchange {
    private final Installation installation;
    private final FeignAttempt attempt;
    private final FeignCall call;
    private final Observation seen;
    private final HttpClientTraits httpClient;
    private final Request.Options given;
    private final @Nullable Watch watch;
    private Request request;
    private Request.Options options;
    private int redirects;

    /**
     * @param waiting the thread that waits for the response; null if none does
     * @throws IllegalStateException if the request does not carry its call's ID
     * @throws IOException if the deadline is over, for example because an interceptor took too long, if {@code waiting} is interrupted, or
     *     if the caller has cancelled the call: nothing is sent
     */
    FeignExchange(
            Installation installation,
            FeignAttempt attempt,
            Request request,
            Request.Options given,
            HttpClientTraits httpClient,
            @Nullable Thread waiting)
            throws IOException {
        this.installation = installation;
        this.attempt = attempt;
        this.call = attempt.call();
        this.seen = attempt.seen();
        this.httpClient = httpClient;
        this.given = given;
        if (call.carriesId() && call.logical().deadline().isOver()) {
            throw seen.notSentInTime();
        }
        if (call.carriesId() && seen.isGivenUp()) {
            throw seen.notSentAfterCancellation();
        }
        if (call.carriesId() && waiting != null && waiting.isInterrupted()) {
            throw seen.notSentByInterrupt();
        }
        call.check(request, attempt.prepared() != null);
        this.request = request;
        this.options = given;
        this.watch = call.carriesId() ? attempt.watch(waiting) : null;
    }

    /** Called before the request leaves. Cuts its timeouts to what the call has left. */
    void starts() {
        seen.started();
        if (watch == null) {
            return;
        }
        watch.requestStarts();
        options = clip(given, call.logical().deadline().millisLeft(), httpClient);
        if (!FeignHeaders.idIn(request.headers()).isEmpty()) {
            request = call.outgoing(request, attempt.number(), options.readTimeoutMillis());
        }
    }

    Request request() {
        return request;
    }

    /** Runs {@code sending}. A client below that has the client half as well then leaves this request unchanged. */
    <T, X extends Exception> T sends(Task<T, X> sending) throws X {
        OuterAttempt above = new OuterAttempt(request.httpMethod().name(), request.url(), call.logical(), seen);
        Watch watched = watch;
        return above.sends(
                watched == null ? sending : () -> installation.sending().during(watched, sending));
    }

    Request.Options options() {
        return options;
    }

    /**
     * Returns the response as the caller may get it.
     *
     * @throws IOException if it may be incomplete
     */
    Response received(Response response) throws IOException {
        Watch watched = watch;
        Response whole = response;
        if (watched != null) {
            if (httpClient.isJava11()) {
                watched.exitByClosing(response);
            }
            Observation exchanges = watched.evidence().exchanges();
            exchanges.returned(response.status());
            seen.learnFrom(exchanges);
            whole = ObservedBody.whole(response, request, seen, watched, httpClient);
        }
        seen.responded(response.status(), response.headers());
        if (evidence().wasNotSent()) {
            seen.respondedHere();
        }
        return whole;
    }

    /**
     * Whether the response redirects to another address of the same origin, or to another method. Then {@link #request()} is the request
     * for it.
     *
     * @param wanted whether somebody still waits for the result
     */
    boolean follows(Response response, boolean wanted) {
        if (watch == null || !given.isFollowRedirects() || redirects == RedirectRule.MOST) {
            return false;
        }
        Redirect redirect = Redirect.of(request, response, httpClient).orElse(null);
        if (redirect == null) {
            return false;
        }
        if (!redirect.staysAtOrigin()) {
            installation.redirects().notFollowed(redirect.target());
            return false;
        }
        boolean unexecuted = RedirectRule.showsNoExecution(
                response.status(), request.httpMethod().name());
        boolean toItself = redirect.repeatsRequest() && redirect.request().url().equals(request.url());
        boolean inTime = call.logical().deadline().outlasts(0);
        if (!RedirectRule.follows(seen, unexecuted, call.logical().isInDoubt(), toItself, wanted && inTime)) {
            return false;
        }
        response.close();
        redirects++;
        request = redirect.request();
        return true;
    }

    /** Called when there is no response. Returns the exception to throw. */
    IOException failed(IOException thrown) {
        IOException failure = watch == null ? thrown : watch.reason(thrown);
        SendEvidence evidence = evidence();
        if (evidence.mayHaveBeenSent() || !(evidence.wasNotSent() || httpClient.sendsOnce(request))) {
            seen.mayHaveBeenSentBefore();
        }
        if (evidence.wasNotSent() || IoFailures.certainlyNotSent(thrown)) {
            seen.notSent(failure);
        } else {
            seen.failed(failure);
        }
        return failure;
    }

    /** Returns the I/O failure of a request with an ID that was aborted before it was sent; null if this is something else. */
    @Nullable
    IOException aborted(Throwable thrown) {
        return watch == null ? null : IoFailures.ofAbortedRequest(thrown);
    }

    private SendEvidence evidence() {
        return watch == null ? new SendEvidence() : watch.evidence();
    }

    /**
     * Called when the HTTP client threw something other than an I/O failure, perhaps after the request left: a timeout in another thread
     * that waits for the response, a retry in the client that gave up, a header of the response that cannot be parsed.
     *
     * @param inFuture whether it completed a future instead of being thrown, for example by an executor that was to pass on the response
     */
    void broken(Throwable thrown, boolean inFuture) {
        SendEvidence evidence = evidence();
        seen.broken(evidence.wasNotSent()
                || (!evidence.mayHaveBeenSent()
                        && !inFuture
                        && LayerFailures.isRefusal(thrown)
                        && httpClient.refusesBeforeSending(request)));
    }

    /**
     * Cuts the timeouts of a request. Redirects are switched off, because the client would send the ID to another origin; they are followed
     * here.
     *
     * @param client the HTTP client; some accept only few values as a connect timeout
     */
    static Request.Options clip(Request.Options options, long millisLeft, HttpClientTraits client) {
        long connect = options.connectTimeoutMillis();
        if (client.takesAnyConnectTimeout()) {
            connect = Deadline.clip(connect, millisLeft);
        } else if (!client.isJava11()) {
            connect = Deadline.clip(connect, Long.highestOneBit(millisLeft));
        } else if (client.keepsItsRedirects(connect)) {
            // Feign replaces a client whose connect timeout is another one by a copy that follows no redirects.
            connect++;
        }
        return new Request.Options(
                connect,
                TimeUnit.MILLISECONDS,
                Deadline.clip(options.readTimeoutMillis(), millisLeft),
                TimeUnit.MILLISECONDS,
                false);
    }
}
