package io.idempotence.client.okhttp;

import io.idempotence.InboundRequest;
import io.idempotence.client.internal.call.OuterAttempt;
import io.idempotence.client.internal.scope.CallScope;
import java.util.Objects;
import okhttp3.HttpUrl;
import okhttp3.Request;
import org.jspecify.annotations.Nullable;

/**
 * The context in which a call is made.
 *
 * @param scope the scope
 * @param inbound the request whose handler makes the call
 * @param outerAttempt another client half, which gives the ID and retries; the call is one of its attempts
 */
record CallContext(
        @Nullable CallScope scope,
        @Nullable InboundRequest inbound,
        @Nullable OuterAttempt outerAttempt) {
    static final CallContext NONE = new CallContext(null, null, null);

    /** Returns the context of this thread for {@code request}. */
    static CallContext current(Request request) {
        CallScope scope = CallScope.current();
        InboundRequest inbound = InboundRequest.current().orElse(null);
        OuterAttempt sending = OuterAttempt.current();
        OuterAttempt above = sending != null && isSame(sending, request) ? sending : null;
        return scope == null && inbound == null && above == null ? NONE : new CallContext(scope, inbound, above);
    }

    /** Whether two requests are the same. A load balancer between the two client halves replaces the host and keeps the rest. */
    private static boolean isSame(OuterAttempt sending, Request request) {
        HttpUrl url = HttpUrl.parse(sending.url());
        return url != null
                && sending.method().equals(request.method())
                && url.encodedPath().equals(request.url().encodedPath())
                && Objects.equals(url.encodedQuery(), request.url().encodedQuery());
    }

    /** Returns this context, with what it lacks taken from the other. */
    CallContext or(CallContext other) {
        return new CallContext(
                scope == null ? other.scope : scope,
                inbound == null ? other.inbound : inbound,
                outerAttempt == null ? other.outerAttempt : outerAttempt);
    }
}
