package io.idempotence.client.okhttp;

import static io.idempotence.http.IdempotenceHeaders.IDEMPOTENCY_ATTEMPT;
import static io.idempotence.http.IdempotenceHeaders.IDEMPOTENCY_KEY;

import io.idempotence.client.retry.HttpMethods;
import io.idempotence.client.retry.LogicalCall;
import io.idempotence.client.retry.Observation;
import io.idempotence.client.retry.Origin;
import java.io.IOException;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import okhttp3.HttpUrl;
import okhttp3.Interceptor.Chain;
import okhttp3.Request;
import okhttp3.Response;
import org.jspecify.annotations.Nullable;

/** One request of an attempt, with those that OkHttp makes of it: redirects, and what it sends again by itself. */
final class OkHttpAttempt {
    private final WireInterceptor wire;
    private final Observation seen;
    private final LogicalCall logical;
    private final @Nullable String header;
    private final boolean passed;
    private volatile @Nullable Request asked;
    private volatile @Nullable Request first;
    private volatile @Nullable Request last;
    private volatile boolean mayHaveRun;

    /**
     * @param header the ID's line, or null if there is none or it is not this half's
     * @param passed it is of a layer above, which may have redirected it
     */
    OkHttpAttempt(
            WireInterceptor wire, Observation seen, LogicalCall logical, @Nullable String header, boolean passed) {
        this.wire = wire;
        this.seen = seen;
        this.logical = logical;
        this.header = header;
        this.passed = passed;
    }

    /** Sends {@code request}; each exchange that comes of it passes {@link #exchange}. */
    Response send(Chain chain, Request request) throws IOException {
        asked = request;
        wire.began(chain.call(), this);
        try {
            Response response = chain.proceed(request);
            answered(response);
            return response;
        } catch (NotSendableException e) {
            throw e;
        } catch (IOException e) {
            if (mayHaveRun) {
                seen.mayHaveBeenSentBefore();
            }
            seen.failed(e);
            throw e;
        } catch (RuntimeException | Error e) {
            seen.broken(first == null);
            throw e;
        } finally {
            wire.ended(chain.call());
            if (chain.call().isCanceled()) {
                seen.mustNotBeSentAgain();
            }
        }
    }

    /** A request is about to leave, over a connection that is there. */
    Response exchange(Chain chain, Request request) throws IOException {
        if (isOfAnInterceptor(request)) {
            return chain.proceed(request);
        }
        Request leaving = request;
        Request before = first;
        if (before == null) {
            check(request);
            first = request;
            if (passed && logical.id() != null && !isSafe(request) && request.header(IDEMPOTENCY_KEY) == null) {
                seen.leavesWithoutId();
            }
        } else {
            leaving = redirected(before, request);
        }
        last = leaving;
        seen.started();
        try {
            Response response = chain.proceed(leaving);
            answered(response);
            // A redirect of the same request says itself that nothing was done here.
            mayHaveRun |= response.code() != 307 && response.code() != 308;
            String retryAfter = response.header("Retry-After");
            if (seen.hasLeftWithoutId() && response.code() == 503 && retryAfter != null && retryAfter.matches("0+")) {
                // OkHttp would send again, and here the caller is to have the answer.
                return response.newBuilder().removeHeader("Retry-After").build();
            }
            return response;
        } catch (IOException e) {
            mayHaveRun = true;
            seen.failed(e);
            throw e;
        }
    }

    /**
     * An interceptor below ours may make requests of its own on the way, such as for a token. What OkHttp makes of the one that was
     * asked for has its ID; and where somebody took that off, body or address are left.
     */
    private boolean isOfAnInterceptor(Request request) {
        Request ours = asked;
        return ours != null
                && ours.header(IDEMPOTENCY_KEY) != null
                && request.header(IDEMPOTENCY_KEY) == null
                && (ours.body() == null || request.body() != ours.body())
                && !(request.method().equals(ours.method()) && request.url().equals(ours.url()));
    }

    private void answered(Response response) {
        Map<String, Collection<String>> headers =
                new LinkedHashMap<>(response.headers().toMultimap());
        seen.answered(response.code(), headers);
    }

    /** It carries this call's ID and no other (promise P1). */
    private void check(Request request) throws NotSendableException {
        if (header != null && !request.headers(IDEMPOTENCY_KEY).equals(List.of(header))) {
            throw new NotSendableException(
                    "another interceptor or an authenticator changed the Idempotency-Key of this call; remove it, or give"
                            + " the ID as a header of the request or with IdempotenceScope");
        }
    }

    /** The ID is for the origin it was made for, and not for the GET that a redirect makes of a POST. */
    private Request redirected(Request before, Request request) throws NotSendableException {
        Request sent = last;
        boolean carried = sent != null && sent.header(IDEMPOTENCY_KEY) != null;
        boolean becameSafe = isSafe(request) && !isSafe(before);
        boolean keepsId = !becameSafe && origin(before.url()).equals(origin(request.url()));
        if (carried && !keepsId) {
            leavesTheId(request, becameSafe);
        } else if (!carried && seen.hasLeftWithoutId() && !isSafe(request)) {
            goesOnWithoutId();
        }
        if (keepsId) {
            check(request);
            return request;
        }
        return request.newBuilder()
                .removeHeader(IDEMPOTENCY_KEY)
                .removeHeader(IDEMPOTENCY_ATTEMPT)
                .build();
    }

    /**
     * In doubt, what is sent without the ID may be carried out twice; and what a GET brings tells nothing, unless the redirect to
     * it was stored.
     */
    private void leavesTheId(Request request, boolean becameSafe) throws NotSendableException {
        boolean inDoubt = logical.isInDoubt() || seen.hasEarlierDoubt();
        if (inDoubt && !(becameSafe && seen.isReplayed())) {
            seen.redirectNotFollowed();
            throw new NotSendableException("a redirect that drops the ID was not followed, as the request may have been"
                    + " carried out before");
        }
        if (becameSafe) {
            // What was asked for was carried out, whatever comes of the GET.
            seen.mayHaveBeenSentBefore();
        } else {
            seen.leavesWithoutId();
            wire.leaving().leavesWithoutId(request.url().host());
        }
    }

    /**
     * Another redirect, or a login. What OkHttp sends again, because the answer got lost or was no final one, would be carried
     * out twice.
     */
    private void goesOnWithoutId() throws NotSendableException {
        int status = seen.status();
        if (status == 0 || status == 408 || status == 503) {
            seen.mayHaveBeenSentBefore();
            throw new NotSendableException("a request that left without its ID is not sent again");
        }
    }

    private static boolean isSafe(Request request) {
        return HttpMethods.isSafe(request.method());
    }

    private static Origin origin(HttpUrl url) {
        return new Origin(url.scheme(), url.host(), url.port());
    }
}
