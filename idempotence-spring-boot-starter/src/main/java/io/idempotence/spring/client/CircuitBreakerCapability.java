package io.idempotence.spring.client;

import feign.Capability;
import feign.Contract;
import feign.Feign;
import feign.InvocationHandlerFactory;
import feign.MethodMetadata;
import java.lang.reflect.Method;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The Feign capability for a circuit breaker around a client. While the client is built, it checks its time limits, and lets its fallbacks
 * know about unknown outcomes. Public because Feign calls it by reflection.
 */
public final class CircuitBreakerCapability implements Capability {
    private final @Nullable TimeLimits limits;
    private final Feign.Builder builder;
    private volatile List<MethodMetadata> methods = List.of();

    /** @param limits compares deadlines with circuit breakers; null if they cannot be compared */
    CircuitBreakerCapability(@Nullable TimeLimits limits, Feign.Builder builder) {
        this.limits = limits;
        this.builder = builder;
    }

    @Override
    public Contract enrich(Contract contract) {
        return type -> {
            List<MethodMetadata> parsed = contract.parseAndValidateMetadata(type);
            methods = parsed;
            return parsed;
        };
    }

    @Override
    public InvocationHandlerFactory enrich(InvocationHandlerFactory factory) {
        return (target, dispatch) -> {
            if (limits != null) {
                dispatch.keySet().forEach(method -> limits.check(target, method, httpMethods(target.type(), method)));
            }
            FallbackBreakers.replaceIn(builder);
            return factory.create(target, dispatch);
        };
    }

    /** The HTTP methods of a method. A default method may call every other one. */
    private List<String> httpMethods(Class<?> type, Method method) {
        return methods.stream()
                .filter(parsed -> method.isDefault() || parsed.configKey().equals(Feign.configKey(type, method)))
                .map(parsed -> parsed.template().method())
                .toList();
    }
}
