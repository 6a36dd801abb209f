package io.idempotence.client.internal.call;

import io.idempotence.client.internal.scope.ThreadBound;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * What a failure of a layer around the attempts, such as a circuit breaker, means for the call that a proxy runs in this thread. For layers
 * that handle the failure before the proxy sees it.
 */
public final class LayerFailures {
    private static final ThreadBound<UnaryOperator<Throwable>> CURRENT = new ThreadBound<>();

    private LayerFailures() {}

    /**
     * Runs the layers and the attempts of a call.
     *
     * @param ofCall returns the unknown outcome that a failure hides, or else the failure
     */
    public static <T extends @Nullable Object, X extends Throwable> T during(
            UnaryOperator<Throwable> ofCall, ThreadBound.Task<T, X> layers) throws X {
        return CURRENT.during(ofCall, layers);
    }

    /**
     * Returns a function of failures of this thread's call. It returns the unknown outcome that a failure hides, or else the failure.
     * Without a call it returns each failure.
     */
    public static UnaryOperator<Throwable> ofCurrentCall() {
        UnaryOperator<Throwable> ofCall = CURRENT.get();
        return ofCall == null ? UnaryOperator.identity() : ofCall;
    }
}
