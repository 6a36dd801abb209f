package io.idempotence.client.internal.call;

import io.idempotence.client.OutcomeUnknown;
import io.idempotence.client.internal.scope.CallerContext;
import io.idempotence.internal.Causes;
import io.idempotence.internal.ThreadBound;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The meaning of the failure of a layer, such as a circuit breaker, for the work below that layer: one call, or a default method and the
 * calls that it makes. Used for layers that handle the failure before the proxy sees it. Thread-safe.
 */
public final class LayerFailures {
    private static final ThreadBound<LayerFailures> CURRENT = new ThreadBound<>();

    /** The refusals of Resilience4j by name, because its modules may be absent. */
    private static final Set<String> REFUSALS = Set.of(
            "io.github.resilience4j.circuitbreaker.CallNotPermittedException",
            "io.github.resilience4j.bulkhead.BulkheadFullException",
            "io.github.resilience4j.ratelimiter.RequestNotPermitted");

    private final boolean ofDefaultMethod;
    private final CallerContext caller = CallerContext.current();

    /** One function for each call that is running, or that ended with an unknown outcome in a default method: it returns what a failure means. */
    private final Set<UnaryOperator<Throwable>> calls;

    private volatile @Nullable UnaryOperator<Throwable> lastReturned;
    private volatile boolean failed;
    private volatile @Nullable Throwable thrownBelow;

    private LayerFailures(boolean ofDefaultMethod, Set<UnaryOperator<Throwable>> calls) {
        this.ofDefaultMethod = ofDefaultMethod;
        this.calls = calls;
    }

    /**
     * Runs the layers and the attempts of a call.
     *
     * @param ofCall returns the unknown outcome that a failure hides, or else the failure; gives the call up
     */
    public static <T extends @Nullable Object, X extends Throwable> T during(
            UnaryOperator<Throwable> ofCall, ThreadBound.Task<T, X> layers) throws X {
        return CURRENT.during(new LayerFailures(false, Set.of(ofCall)), layers);
    }

    /** Runs the layers around a default method, and the method. */
    public static <T extends @Nullable Object, X extends Throwable> T duringDefaultMethod(ThreadBound.Task<T, X> layers)
            throws X {
        LayerFailures failures = new LayerFailures(true, ConcurrentHashMap.newKeySet());
        failures.failed = !begins(failures::of);
        return CURRENT.during(failures, layers);
    }

    /** Runs work that is not below the layers of this thread, such as their fallback. */
    public static <T extends @Nullable Object> T outside(Supplier<T> work) {
        return CURRENT.<T, RuntimeException>during(null, work::get);
    }

    /** The failures of the layers that this thread runs; null if it runs none. */
    public static @Nullable LayerFailures current() {
        return CURRENT.get();
    }

    /** Runs what is below the layers, perhaps in another thread, in the scope and inbound request of the thread above them. */
    public <T extends @Nullable Object> T below(Supplier<T> work) {
        try {
            return caller.<T, RuntimeException>during(() -> CURRENT.during(this, work::get));
        } catch (RuntimeException | Error e) {
            thrownBelow = e;
            throw e;
        }
    }

    /**
     * Ends everything below the layers: what was not sent so far is never sent.
     *
     * @return the unknown outcome of a call that {@code thrown} hides, or else {@code thrown}. What a default method itself throws hides
     *     nothing
     */
    public Throwable of(Throwable thrown) {
        Throwable own = thrownBelow;
        if (ofDefaultMethod && own != null && Causes.of(thrown).anyMatch(cause -> cause == own)) {
            return thrown;
        }
        failed = true;
        Throwable unknown = thrown;
        for (UnaryOperator<Throwable> call : calls) {
            Throwable end = call.apply(thrown);
            unknown = end == thrown ? unknown : end;
        }
        UnaryOperator<Throwable> returned = lastReturned;
        return unknown == thrown && returned != null ? returned.apply(thrown) : unknown;
    }

    /**
     * Records a call that begins in this thread. A default method may make it.
     *
     * @param ofCall returns the unknown outcome that a failure hides, or else the failure; gives the call up
     * @return false if a layer around that default method has failed, so that nothing may be sent any more
     */
    public static boolean begins(UnaryOperator<Throwable> ofCall) {
        LayerFailures around = CURRENT.get();
        if (around == null || !around.ofDefaultMethod) {
            return true;
        }
        around.calls.add(ofCall);
        return !around.failed;
    }

    /**
     * Records that a call of this thread has ended.
     *
     * @param ofCall the function that was passed to {@link #begins} when the call began
     * @param returned whether it carried an ID and returned a value, which a later failure of a default method hides
     */
    public static void ended(UnaryOperator<Throwable> ofCall, boolean returned) {
        LayerFailures around = CURRENT.get();
        if (around != null && around.ofDefaultMethod && around.calls.remove(ofCall) && returned) {
            around.lastReturned = ofCall;
        }
    }

    /** Whether {@code thrown} contains a layer's refusal to make the call that the layer is around, or to run that call again. */
    public static boolean containsRefusal(Throwable thrown) {
        return causes(thrown).anyMatch(LayerFailures::isRefusal);
    }

    /** An exception and its causes, up to an unknown outcome. That one and its causes belong to the call that had it, perhaps a fallback's. */
    static Stream<Throwable> causes(Throwable thrown) {
        return Causes.of(thrown).takeWhile(cause -> !(cause instanceof OutcomeUnknown));
    }

    /** Whether {@code thrown} is a layer's refusal to pass a request on. The layer may have passed the same request on before. */
    public static boolean isRefusal(Throwable thrown) {
        return thrown instanceof RejectedExecutionException
                || REFUSALS.contains(thrown.getClass().getName());
    }
}
