package io.idempotence.client.okhttp;

import io.idempotence.client.internal.call.OuterAttempt;
import io.idempotence.client.internal.scope.CallerContext;
import java.util.Objects;
import okhttp3.HttpUrl;
import okhttp3.Request;
import org.jspecify.annotations.Nullable;

/**
 * The context in which a call is made.
 *
 * @param caller the scope, and the request whose handler makes the call
 * @param outerAttempt another client half, which gives the ID and retries; the call is one of its attempts
 */
record CallContext(CallerContext caller, @Nullable OuterAttempt outerAttempt) {
    static final CallContext NONE = new CallContext(new CallerContext(null, null), null);

    /** Returns the context of this thread for {@code request}. */
    static CallContext current(Request request) {
        OuterAttempt sending = OuterAttempt.current();
        return new CallContext(CallerContext.current(), sending != null && isSame(sending, request) ? sending : null);
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
        return new CallContext(caller.or(other.caller), outerAttempt == null ? other.outerAttempt : outerAttempt);
    }
}
