package io.idempotence.client.okhttp;

import static io.idempotence.http.IdempotenceHeaders.IDEMPOTENCY_KEY;

import io.idempotence.client.retry.HttpMethods;
import io.idempotence.client.retry.LogicalCall;
import io.idempotence.client.retry.Observation;
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
final class OkHttpAttempt implements OnTheWire {
    private final Observation seen;
    private final LogicalCall logical;
    private final @Nullable String header;
    private volatile @Nullable Request first;
    private volatile boolean mayHaveRun;
    private volatile boolean leftWithoutId;

    /** @param header the ID's line, or null if there is none */
    OkHttpAttempt(Observation seen, LogicalCall logical, @Nullable String header) {
        this.seen = seen;
        this.logical = logical;
        this.header = header;
    }

    /** True if it was redirected to another origin and sent there without its ID. */
    boolean leftWithoutId() {
        return leftWithoutId;
    }

    Response send(Chain chain, Request request) throws IOException {
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
            if (chain.call().isCanceled()) {
                seen.mustNotBeSentAgain();
            }
        }
    }

    @Override
    public Response exchange(Chain chain, Request request) throws IOException {
        Request leaving = request;
        Request before = first;
        if (before == null) {
            check(request);
            first = request;
        } else {
            leaving = redirected(before, request);
        }
        seen.started();
        try {
            Response response = chain.proceed(leaving);
            answered(response);
            // Says itself that nothing was done here.
            mayHaveRun |= !isRepeated(response.code());
            if (isInDoubt() && mayNotSettle(leaving, response)) {
                seen.redirectNotFollowed();
                return response.newBuilder().removeHeader("Location").build();
            }
            return response;
        } catch (IOException e) {
            mayHaveRun = true;
            seen.failed(e);
            throw e;
        }
    }

    private static boolean isRepeated(int status) {
        return status == 307 || status == 308;
    }

    private boolean isInDoubt() {
        return logical.isInDoubt() || seen.hasEarlierDoubt();
    }

    /** It leads away without the ID: what is sent there would be carried out twice, and what comes from there does not tell. */
    private boolean mayNotSettle(Request sent, Response response) {
        String location = response.header("Location");
        if (location == null || sent.header(IDEMPOTENCY_KEY) == null) {
            return false;
        }
        if (!isRepeated(response.code())) {
            return response.code() >= 300 && response.code() <= 303 && !seen.isReplayed();
        }
        HttpUrl to = sent.url().resolve(location);
        Request before = first;
        return to != null && before != null && !OnTheWire.isSameOrigin(before.url(), to);
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
                    "another interceptor changed the Idempotency-Key of this call; remove it, or give"
                            + " the ID as a header of the request or with IdempotenceScope");
        }
    }

    private Request redirected(Request before, Request request) {
        if (OnTheWire.keepsId(before, request)) {
            return request;
        }
        if (!HttpMethods.isSafe(request.method()) && request.header(IDEMPOTENCY_KEY) != null) {
            leftWithoutId = true;
            seen.mustNotBeSentAgain();
        }
        return OnTheWire.withoutId(request);
    }
}
