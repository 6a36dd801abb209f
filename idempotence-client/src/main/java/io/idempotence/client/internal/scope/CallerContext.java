package io.idempotence.client.internal.scope;

import io.idempotence.InboundRequest;
import io.idempotence.internal.ThreadBound.Task;
import org.jspecify.annotations.Nullable;

/**
 * The part of a thread's state on which the IDs of its calls depend.
 *
 * @param scope the scope, or null if there is none
 * @param inbound the request whose handler makes the call, or null if there is none
 */
public record CallerContext(
        @Nullable CallScope scope, @Nullable InboundRequest inbound) {
    /** That of this thread. */
    public static CallerContext current() {
        return new CallerContext(CallScope.current(), InboundRequest.current().orElse(null));
    }

    /** Returns this context, with what it lacks taken from the other. */
    public CallerContext or(CallerContext other) {
        return new CallerContext(scope == null ? other.scope : scope, inbound == null ? other.inbound : inbound);
    }

    /** Runs work in this scope and request, perhaps in another thread. */
    public <T extends @Nullable Object, X extends Throwable> T during(Task<T, X> work) throws X {
        Runnable leave = inbound == null ? () -> {} : inbound.enter();
        try {
            return CallScope.inside(scope, work);
        } finally {
            leave.run();
        }
    }
}
