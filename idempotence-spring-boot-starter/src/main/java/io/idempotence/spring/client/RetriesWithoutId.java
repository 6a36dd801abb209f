package io.idempotence.spring.client;

import io.idempotence.http.IdempotenceHeaders;
import java.io.IOException;
import org.apache.hc.client5.http.impl.DefaultHttpRequestRetryStrategy;
import org.apache.hc.client5.http.protocol.HttpClientContext;
import org.apache.hc.core5.http.HttpRequest;
import org.apache.hc.core5.http.HttpResponse;
import org.apache.hc.core5.http.protocol.HttpContext;
import org.jspecify.annotations.Nullable;

/**
 * The default retries of Apache HttpClient, without those of an attempt of the client half, which retries by itself and has to see each
 * request. HttpClient sends a request again after a 429 or 503, also a POST. If the second connection were refused, nobody would see the
 * 503, and the call would end as not sent.
 *
 * <p>Where {@code disableAutomaticRetries()} is called, before or after, nothing is retried. Another strategy that is set afterwards counts
 * instead, and one that was set before is lost.
 */
final class RetriesWithoutId extends DefaultHttpRequestRetryStrategy {
    @Override
    public boolean retryRequest(HttpRequest request, IOException failure, int executions, HttpContext context) {
        return !isAttempt(request) && super.retryRequest(request, failure, executions, context);
    }

    @Override
    public boolean retryRequest(HttpResponse response, int executions, HttpContext context) {
        return !isAttempt(HttpClientContext.cast(context).getRequest())
                && super.retryRequest(response, executions, context);
    }

    /** A client that is switched off may send a key of its caller, but no number of an attempt. */
    private static boolean isAttempt(@Nullable HttpRequest request) {
        return request != null && request.containsHeader(IdempotenceHeaders.IDEMPOTENCY_ATTEMPT);
    }
}
