package io.idempotence.client.okhttp;

import static io.idempotence.http.IdempotenceHeaders.IDEMPOTENCY_KEY;

import io.idempotence.client.retry.HttpMethods;
import io.idempotence.client.retry.LayerAbove;
import java.io.IOException;
import okhttp3.Interceptor.Chain;
import okhttp3.Request;
import okhttp3.Response;
import org.jspecify.annotations.Nullable;

/** A request of a layer above, which has the ID and tries again. Redirects that OkHttp follows all the same are not to take that ID along. */
final class PassedRequest implements OnTheWire {
    private final LayerAbove above;
    private volatile @Nullable Request first;

    PassedRequest(LayerAbove above) {
        this.above = above;
    }

    @Override
    public Response exchange(Chain chain, Request request) throws IOException {
        Request before = first;
        if (before == null) {
            first = request;
            return chain.proceed(request);
        }
        if (OnTheWire.keepsId(before, request)) {
            return chain.proceed(request);
        }
        if (!HttpMethods.isSafe(request.method()) && request.header(IDEMPOTENCY_KEY) != null) {
            if (above.isInDoubt()) {
                throw new NotSendableException(
                        "a redirect to another origin was not followed: an earlier attempt may have been"
                                + " carried out, and without the ID this one would be as well");
            }
            above.seen().mustNotBeSentAgain();
        }
        return chain.proceed(OnTheWire.withoutId(request));
    }
}
