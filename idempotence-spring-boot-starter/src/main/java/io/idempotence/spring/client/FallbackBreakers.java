package io.idempotence.spring.client;

import io.idempotence.client.internal.call.LayerFailures;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.springframework.cloud.client.circuitbreaker.CircuitBreaker;
import org.springframework.cloud.client.circuitbreaker.CircuitBreakerFactory;
import org.springframework.cloud.client.circuitbreaker.ConfigBuilder;

/** The circuit breakers of one Feign client. They are those of the application, except that fallbacks are told of unknown outcomes. */
final class FallbackBreakers extends CircuitBreakerFactory<Object, ConfigBuilder<Object>> {
    private final CircuitBreakerFactory<?, ?> ofApplication;

    FallbackBreakers(CircuitBreakerFactory<?, ?> ofApplication) {
        this.ofApplication = ofApplication;
    }

    @Override
    public CircuitBreaker create(String id) {
        return telling(ofApplication.create(id));
    }

    @Override
    public CircuitBreaker create(String id, String group) {
        return telling(ofApplication.create(id, group));
    }

    private static CircuitBreaker telling(CircuitBreaker breaker) {
        return new CircuitBreaker() {
            @Override
            public <T> T run(Supplier<T> call) {
                return breaker.run(call);
            }

            @Override
            public <T> T run(Supplier<T> call, Function<Throwable, T> fallback) {
                UnaryOperator<Throwable> ofCall = LayerFailures.ofCurrentCall();
                return breaker.run(call, thrown -> {
                    Throwable cause = FeignFallback.causeOf(ofCall.apply(thrown));
                    return FeignFallback.run(cause, () -> fallback.apply(cause));
                });
            }
        };
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
                "these circuit breakers belong to one Feign client; configure the application's CircuitBreakerFactory");
    }
}
