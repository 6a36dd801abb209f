package io.idempotence.client.okhttp;

import java.io.IOException;
import okhttp3.Interceptor.Chain;
import okhttp3.Request;
import okhttp3.Response;
import org.jspecify.annotations.Nullable;

/** A request of a layer above, which has the ID and tries again. Redirects that OkHttp follows all the same are not to take that ID along. */
final class PassedRequest implements OnTheWire {
    private volatile @Nullable Request first;

    @Override
    public Response exchange(Chain chain, Request request) throws IOException {
        Request before = first;
        if (before == null) {
            first = request;
        }
        return chain.proceed(
                before == null || OnTheWire.keepsId(before, request) ? request : OnTheWire.withoutId(request));
    }
}
