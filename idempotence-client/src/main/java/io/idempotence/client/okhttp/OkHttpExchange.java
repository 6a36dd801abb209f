package io.idempotence.client.okhttp;

import static io.idempotence.http.IdempotenceHeaders.IDEMPOTENCY_ATTEMPT;
import static io.idempotence.http.IdempotenceHeaders.IDEMPOTENCY_KEY;

import io.idempotence.client.internal.call.CallIdentity;
import io.idempotence.client.internal.call.LogicalCall;
import io.idempotence.client.internal.http.HttpMethods;
import io.idempotence.client.internal.http.HttpOrigin;
import io.idempotence.client.internal.http.Observation;
import io.idempotence.client.internal.http.RedirectRule;
import java.io.IOException;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import okhttp3.HttpUrl;
import okhttp3.Interceptor.Chain;
import okhttp3.Request;
import okhttp3.Response;
import org.jspecify.annotations.Nullable;

/** A request of an attempt, with the further requests that OkHttp makes of it: redirects, and those that it repeats by itself. */
final class OkHttpExchange {
    private static final String LOCATION = "Location";

    private final RedirectRule redirects;
    private final Observation seen;
    private final LogicalCall logical;
    private final @Nullable CallIdentity identity;
    private final @Nullable RepeatableBody body;
    private volatile @Nullable Request asked;
    private volatile @Nullable Request first;
    private volatile @Nullable String withheldLocation;

    /**
     * @param identity the ID of the call; null if another layer sets it
     * @param body the request body; null if there is none, or if another layer keeps it
     */
    OkHttpExchange(
            RedirectRule redirects,
            Observation seen,
            LogicalCall logical,
            @Nullable CallIdentity identity,
            @Nullable RepeatableBody body) {
        this.redirects = redirects;
        this.seen = seen;
        this.logical = logical;
        this.identity = identity;
        this.body = body;
    }

    /** Sends {@code request}. Each request that results from it passes {@link #sendOverConnection}. */
    Response send(Chain chain, Request request) throws IOException {
        asked = request;
        try {
            Response response = whole(chain.proceed(request));
            seen.returned(response.code());
            responded(response);
            if (neverLeft()) {
                seen.respondedHere();
            }
            return response;
        } catch (NotSendableException e) {
            throw e;
        } catch (IOException e) {
            seen.failedAfterItsRequests();
            if (neverLeft()) {
                seen.notSent(e);
            } else if (!isFaulty()) {
                seen.failed(e);
            }
            throw e;
        } catch (RuntimeException | Error e) {
            seen.broken(first == null || (isFaulty() && !seen.hasHiddenDoubt()));
            throw e;
        } finally {
            if (chain.call().isCanceled()) {
                seen.mustNotBeSentAgain();
            }
        }
    }

    /** Sends a request over an established connection. */
    Response sendOverConnection(Chain chain, Request request) throws IOException {
        if (isOfAnInterceptor(request)) {
            return chain.proceed(request);
        }
        Request leaving = prepared(request);
        withheldLocation = null;
        seen.started();
        try {
            Response response = chain.proceed(leaving);
            responded(response);
            if (!RedirectRule.repeatsRequest(response.code())) {
                // A redirect that repeats the request would show that nothing was executed here.
                seen.mayHaveBeenExecuted();
            }
            return mayBeFollowed(leaving, response) ? response : withoutLocation(response);
        } catch (IOException e) {
            if (isFaulty() || e instanceof NotSendableException) {
                seen.broken(true);
            } else {
                seen.mayHaveBeenExecuted();
                seen.failed(e);
            }
            throw e;
        }
    }

    /**
     * Whether the request never left: no exchange began and the body was not read. Another kind of transport than OkHttp's hides its
     * exchanges, but it reads the body.
     */
    private boolean neverLeft() {
        return first == null && body != null && body.length() != 0 && !body.isFaulty() && !seen.isBodyTaken();
    }

    /** Whether its own body made the request incomplete. */
    private boolean isFaulty() {
        return body != null && body.isFaulty();
    }

    /**
     * Whether an interceptor behind this one makes a request of its own, for example for a token. A request that OkHttp derives from the
     * one to send has its ID. If the ID was removed, it still has the same body or address.
     */
    private boolean isOfAnInterceptor(Request request) {
        Request ours = asked;
        return ours != null
                && ours.header(IDEMPOTENCY_KEY) != null
                && request.header(IDEMPOTENCY_KEY) == null
                && (ours.body() == null || request.body() != ours.body())
                && !(request.method().equals(ours.method()) && request.url().equals(ours.url()));
    }

    private void responded(Response response) {
        Map<String, Collection<String>> headers =
                new LinkedHashMap<>(response.headers().toMultimap());
        seen.responded(response.code(), headers);
    }

    /** Returns the request to send. It carries the ID of this call and no other (promise P1). Only the GET of a redirect carries none. */
    private Request prepared(Request request) throws NotSendableException {
        Request before = first;
        if (before == null) {
            first = request;
        } else if (!isSafe(before)) {
            if (isSafe(request) || RedirectRule.mayBecomeGet(seen.status())) {
                // The original request may have been executed, whatever this one returns.
                seen.mayHaveBeenSentBefore();
            }
            if (isSafe(request)) {
                return request.newBuilder()
                        .removeHeader(IDEMPOTENCY_KEY)
                        .removeHeader(IDEMPOTENCY_ATTEMPT)
                        .build();
            }
        }
        if (identity != null) {
            try {
                identity.requireUnchanged(request.headers(IDEMPOTENCY_KEY));
            } catch (IllegalStateException e) {
                throw new NotSendableException(e);
            }
        }
        return request;
    }

    /** Whether a redirect may be followed. */
    private boolean mayBeFollowed(Request request, Response response) {
        String location = response.isRedirect() ? response.header(LOCATION) : null;
        HttpUrl target = location == null ? null : request.url().resolve(location);
        if (target == null || request.header(IDEMPOTENCY_KEY) == null) {
            return true;
        }
        if (!origin(target).equals(origin(request.url()))) {
            redirects.notFollowed(origin(target));
            return false;
        }
        return RedirectRule.settles(seen, RedirectRule.repeatsRequest(response.code()), logical.isInDoubt());
    }

    /** Removes the Location of a redirect, so that OkHttp does not follow it. */
    private Response withoutLocation(Response response) {
        withheldLocation = response.header(LOCATION);
        return response.newBuilder().removeHeader(LOCATION).build();
    }

    private Response whole(Response response) {
        String location = withheldLocation;
        return location == null || !response.isRedirect()
                ? response
                : response.newBuilder().header(LOCATION, location).build();
    }

    private static boolean isSafe(Request request) {
        return HttpMethods.isSafe(request.method());
    }

    private static HttpOrigin origin(HttpUrl url) {
        return new HttpOrigin(url.scheme(), url.host(), url.port());
    }
}
