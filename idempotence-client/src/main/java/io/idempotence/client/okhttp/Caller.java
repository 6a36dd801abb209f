package io.idempotence.client.okhttp;

import io.idempotence.InboundRequest;
import io.idempotence.client.internal.call.OuterAttempt;
import io.idempotence.client.internal.scope.CallScope;
import java.util.Objects;
import okhttp3.HttpUrl;
import okhttp3.Request;
import org.jspecify.annotations.Nullable;

/**
 * Where a call is made.
 *
 * @param scope the scope
 * @param inbound the request whose handler makes it
 * @param layerAbove another client half, which gives the ID and retries, and of which it is an attempt
 */
record Caller(
        @Nullable CallScope scope,
        @Nullable InboundRequest inbound,
        @Nullable OuterAttempt layerAbove) {
    static final Caller NOBODY = new Caller(null, null, null);

    /** This thread, as the caller of {@code request}. */
    static Caller current(Request request) {
        CallScope scope = CallScope.current();
        InboundRequest inbound = InboundRequest.current().orElse(null);
        OuterAttempt sending = OuterAttempt.current();
        OuterAttempt above = sending != null && isSame(sending, request) ? sending : null;
        return scope == null && inbound == null && above == null ? NOBODY : new Caller(scope, inbound, above);
    }

    /** A load balancer between the halves puts another host in, and leaves the rest. */
    private static boolean isSame(OuterAttempt sending, Request request) {
        HttpUrl url = HttpUrl.parse(sending.url());
        return url != null
                && sending.method().equals(request.method())
                && url.encodedPath().equals(request.url().encodedPath())
                && Objects.equals(url.encodedQuery(), request.url().encodedQuery());
    }

    /** This one, and for what it lacks the other. */
    Caller or(Caller other) {
        return new Caller(
                scope == null ? other.scope : scope,
                inbound == null ? other.inbound : inbound,
                layerAbove == null ? other.layerAbove : layerAbove);
    }
}
