package io.idempotence.client.okhttp;

import static io.idempotence.http.IdempotenceHeaders.IDEMPOTENCY_ATTEMPT;
import static io.idempotence.http.IdempotenceHeaders.IDEMPOTENCY_KEY;

import io.idempotence.client.internal.call.LogicalCall;
import io.idempotence.client.internal.http.HttpMethods;
import io.idempotence.client.internal.http.Observation;
import io.idempotence.client.internal.http.Origin;
import java.io.IOException;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import okhttp3.HttpUrl;
import okhttp3.Interceptor.Chain;
import okhttp3.Request;
import okhttp3.Response;
import org.jspecify.annotations.Nullable;

/** One request of an attempt, with those that OkHttp makes of it: redirects, and what it sends again by itself. */
final class OkHttpAttempt {
    private static final String LOCATION = "Location";

    private final Consumer<HttpUrl> redirectNotFollowed;
    private final Observation seen;
    private final LogicalCall logical;
    private final @Nullable String header;
    private final @Nullable RepeatableBody body;
    private volatile @Nullable Request asked;
    private volatile @Nullable Request first;
    private volatile @Nullable String withheldLocation;
    private volatile boolean mayHaveRun;

    /**
     * @param redirectNotFollowed gets the target of a redirect to another origin
     * @param header the ID's line, or null if there is none or it is not this half's
     * @param body what the request sends, or null if that is nothing or not this half's
     */
    OkHttpAttempt(
            Consumer<HttpUrl> redirectNotFollowed,
            Observation seen,
            LogicalCall logical,
            @Nullable String header,
            @Nullable RepeatableBody body) {
        this.redirectNotFollowed = redirectNotFollowed;
        this.seen = seen;
        this.logical = logical;
        this.header = header;
        this.body = body;
    }

    /** Sends {@code request}; each exchange that comes of it passes {@link #exchange}. */
    Response send(Chain chain, Request request) throws IOException {
        asked = request;
        try {
            Response response = whole(chain.proceed(request));
            answered(response);
            return response;
        } catch (NotSendableException e) {
            throw e;
        } catch (IOException e) {
            if (mayHaveRun) {
                seen.mayHaveBeenSentBefore();
            }
            if (neverLeft()) {
                seen.notSent(e);
            } else if (!isFaulty()) {
                seen.failed(e);
            }
            throw e;
        } catch (RuntimeException | Error e) {
            seen.broken(first == null || (isFaulty() && !mayHaveRun));
            throw e;
        } finally {
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
        Request leaving = prepared(request);
        withheldLocation = null;
        seen.started();
        try {
            Response response = chain.proceed(leaving);
            answered(response);
            // A redirect of the same request says itself that nothing was done here.
            mayHaveRun |= response.code() != 307 && response.code() != 308;
            return mayBeFollowed(leaving, response) ? response : withoutLocation(response);
        } catch (IOException e) {
            if (isFaulty() || e instanceof NotSendableException) {
                seen.broken(true);
            } else {
                mayHaveRun = true;
                seen.failed(e);
            }
            throw e;
        }
    }

    /** No exchange began. A transport of another kind than OkHttp's hides its exchanges, but it asks for the body. */
    private boolean neverLeft() {
        return first == null && body != null && body.length() != 0 && !body.isFaulty() && !seen.isBodyTaken();
    }

    /** True if its own body kept the request from being complete. */
    private boolean isFaulty() {
        return body != null && body.isFaulty();
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
        seen.responded(response.code(), headers);
    }

    /** It carries this call's ID and no other (promise P1), but for the GET that a redirect makes of it, which carries none. */
    private Request prepared(Request request) throws NotSendableException {
        Request before = first;
        if (before == null) {
            first = request;
        } else if (isSafe(request) && !isSafe(before)) {
            // What was asked for may have been executed, whatever comes of the GET.
            seen.mayHaveBeenSentBefore();
            return request.newBuilder()
                    .removeHeader(IDEMPOTENCY_KEY)
                    .removeHeader(IDEMPOTENCY_ATTEMPT)
                    .build();
        }
        if (header != null && !request.headers(IDEMPOTENCY_KEY).equals(List.of(header))) {
            throw new NotSendableException(
                    "another interceptor or an authenticator changed the Idempotency-Key of this call; remove it, or give"
                            + " the ID as a header of the request or with IdempotenceScope");
        }
        return request;
    }

    /**
     * An ID is for the origin that the call was made to. And while an earlier attempt is in doubt, the GET that follows a redirect
     * does not tell what became of it, unless that redirect was stored.
     */
    private boolean mayBeFollowed(Request request, Response response) {
        String location = response.isRedirect() ? response.header(LOCATION) : null;
        HttpUrl target = location == null ? null : request.url().resolve(location);
        if (target == null || request.header(IDEMPOTENCY_KEY) == null) {
            return true;
        }
        if (!origin(target).equals(origin(request.url()))) {
            redirectNotFollowed.accept(target);
            return false;
        }
        boolean becomesGet = response.code() != 307 && response.code() != 308;
        return !becomesGet || seen.isReplayed() || !(logical.isInDoubt() || seen.hasEarlierDoubt());
    }

    /** OkHttp follows no redirect that does not say where to. */
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

    private static Origin origin(HttpUrl url) {
        return new Origin(url.scheme(), url.host(), url.port());
    }
}
