package io.idempotence.client.okhttp;

import static io.idempotence.http.IdempotenceHeaders.IDEMPOTENCY_ATTEMPT;
import static io.idempotence.http.IdempotenceHeaders.IDEMPOTENCY_KEY;

import io.idempotence.client.retry.HttpMethods;
import io.idempotence.client.retry.Origin;
import java.io.IOException;
import okhttp3.HttpUrl;
import okhttp3.Interceptor.Chain;
import okhttp3.Request;
import okhttp3.Response;

/** A request that OkHttp may make others of, as a tag which those carry as well. */
interface OnTheWire {
    /** One of them is about to leave. */
    Response exchange(Chain chain, Request request) throws IOException;

    /** The ID is for the origin it was made for, and not for the GET that a redirect makes of a POST. */
    static boolean keepsId(Request first, Request request) {
        boolean becameSafe = HttpMethods.isSafe(request.method()) && !HttpMethods.isSafe(first.method());
        return !becameSafe && isSameOrigin(first.url(), request.url());
    }

    static boolean isSameOrigin(HttpUrl one, HttpUrl other) {
        return origin(one).equals(origin(other));
    }

    private static Origin origin(HttpUrl url) {
        return new Origin(url.scheme(), url.host(), url.port());
    }

    static Request withoutId(Request request) {
        return request.newBuilder()
                .removeHeader(IDEMPOTENCY_KEY)
                .removeHeader(IDEMPOTENCY_ATTEMPT)
                .build();
    }
}
