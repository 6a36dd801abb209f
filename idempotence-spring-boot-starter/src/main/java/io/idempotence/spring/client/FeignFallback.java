package io.idempotence.spring.client;

import io.idempotence.client.OutcomeUnknown;
import io.idempotence.internal.Causes;
import io.idempotence.internal.ThreadBound;
import java.util.Optional;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The view of a fallback that sees no cause on the outcome of its call: of the {@code fallback} class of a {@code @FeignClient}, or of a
 * method without a {@code Throwable} of an {@code @HttpServiceFallback} class. Other fallbacks do not need it: their cause is an {@link
 * OutcomeUnknown}, if the call may have been executed.
 *
 * <p>For all clients of Spring Cloud in an application with this auto-configuration, those included in which the application called {@code
 * IdempotentFeign.install} itself.
 */
public final class FeignFallback {
    private static final ThreadBound<OutcomeUnknown> UNKNOWN = new ThreadBound<>();

    private FeignFallback() {}

    /**
     * The unknown outcome of the call whose fallback runs in this thread, whatever ended the call: its last attempt, its deadline or the
     * circuit breaker's time limiter. For the fallback of a default method, that of a call that the method made in the circuit breaker's
     * thread.
     *
     * @return the unknown outcome, with the ID; empty outside of a fallback, or if the call was not sent, was refused, ended with a
     *     response, or carried no ID
     */
    public static Optional<OutcomeUnknown> unknownOutcome() {
        return Optional.ofNullable(UNKNOWN.get());
    }

    /** Runs a fallback for {@code cause}. */
    static <T extends @Nullable Object> T run(Throwable cause, Supplier<T> fallback) {
        return UNKNOWN.during(cause instanceof OutcomeUnknown unknown ? unknown : null, fallback::get);
    }

    /** Returns the unknown outcome in {@code thrown}, which a thread pool may have wrapped, or else {@code thrown} itself. */
    static Throwable causeOf(Throwable thrown) {
        return Causes.of(thrown)
                .filter(OutcomeUnknown.class::isInstance)
                .findFirst()
                .orElse(thrown);
    }
}
