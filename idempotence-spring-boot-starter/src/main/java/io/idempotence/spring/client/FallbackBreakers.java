package io.idempotence.spring.client;

import io.idempotence.client.internal.call.LayerFailures;
import java.lang.reflect.Field;
import java.util.function.Function;
import java.util.function.Supplier;
import org.springframework.cloud.client.circuitbreaker.CircuitBreaker;
import org.springframework.cloud.client.circuitbreaker.CircuitBreakerFactory;
import org.springframework.cloud.client.circuitbreaker.ConfigBuilder;
import org.springframework.cloud.client.circuitbreaker.NoFallbackAvailableException;
import org.springframework.util.ReflectionUtils;

/** The circuit breakers around clients. They are those of the application, except that fallbacks see unknown outcomes. */
final class FallbackBreakers extends CircuitBreakerFactory<Object, ConfigBuilder<Object>> {
    private final CircuitBreakerFactory<?, ?> ofApplication;

    FallbackBreakers(CircuitBreakerFactory<?, ?> ofApplication) {
        this.ofApplication = ofApplication;
    }

    @Override
    public CircuitBreaker create(String id) {
        return showingOutcomes(ofApplication.create(id));
    }

    @Override
    public CircuitBreaker create(String id, String group) {
        return showingOutcomes(ofApplication.create(id, group));
    }

    /** Replaces the circuit breakers of the part of Spring Cloud that puts them around clients. */
    static void replaceIn(Object owner) {
        Field field = ReflectionUtils.findField(owner.getClass(), "circuitBreakerFactory");
        if (field == null) {
            throw new IllegalStateException(owner.getClass().getName() + " of this version of Spring Cloud has no"
                    + " circuitBreakerFactory, so fallbacks would not see unknown outcomes; use a version that"
                    + " docs/spring.md lists");
        }
        ReflectionUtils.makeAccessible(field);
        if (ReflectionUtils.getField(field, owner) instanceof CircuitBreakerFactory<?, ?> breakers
                && !(breakers instanceof FallbackBreakers)) {
            ReflectionUtils.setField(field, owner, new FallbackBreakers(breakers));
        }
    }

    private static CircuitBreaker showingOutcomes(CircuitBreaker breaker) {
        return new CircuitBreaker() {
            @Override
            public <T> T run(Supplier<T> call) {
                LayerFailures failures = LayerFailures.current();
                if (failures == null) {
                    return breaker.run(call);
                }
                try {
                    return breaker.run(() -> failures.below(call));
                } catch (RuntimeException e) {
                    throw failures.of(e) instanceof RuntimeException end ? end : e;
                }
            }

            @Override
            public <T> T run(Supplier<T> call, Function<Throwable, T> fallback) {
                LayerFailures failures = LayerFailures.current();
                return failures == null
                        ? breaker.run(call, thrown -> fallBack(thrown, thrown, fallback))
                        : breaker.run(
                                () -> failures.below(call), thrown -> fallBack(failures.of(thrown), thrown, fallback));
            }
        };
    }

    /** Runs a fallback. Without one, Spring Cloud throws an exception that would hide the unknown outcome of a layer. */
    private static <T> T fallBack(Throwable end, Throwable thrown, Function<Throwable, T> fallback) {
        Throwable cause = FeignFallback.causeOf(end);
        try {
            return LayerFailures.outside(() -> FeignFallback.run(cause, () -> fallback.apply(cause)));
        } catch (NoFallbackAvailableException e) {
            throw end != thrown && e.getCause() == cause && cause instanceof RuntimeException unknown ? unknown : e;
        }
    }

    @Override
    protected ConfigBuilder<Object> configBuilder(String id) {
        throw notHere();
    }

    @Override
    public void configureDefault(Function<String, Object> configuration) {
        throw notHere();
    }

    private static UnsupportedOperationException notHere() {
        return new UnsupportedOperationException(
                "these circuit breakers belong to Spring Cloud's clients; configure the application's CircuitBreakerFactory");
    }
}
