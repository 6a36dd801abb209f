package io.idempotence.client.okhttp;

import io.idempotence.client.internal.call.OuterAttempt;
import io.idempotence.client.internal.http.Observation;
import java.io.IOException;
import okhttp3.Interceptor.Chain;
import okhttp3.Response;

/** A request of a layer above, which gives the ID and retries. What OkHttp repeats by itself is reported to that layer. */
final class PassedRequest {
    private PassedRequest() {}

    static Response send(Chain chain, OuterAttempt above, WireInterceptor wire) throws IOException {
        Observation seen = new Observation();
        if (above.seen().hasEarlierDoubt()) {
            seen.mayHaveBeenSentBefore();
        }
        try {
            OkHttpAttempt passed = new OkHttpAttempt(wire.redirects(), seen, above.call(), null, null);
            return wire.send(passed, chain, chain.request());
        } finally {
            above.seen().learnFrom(seen);
        }
    }
}
