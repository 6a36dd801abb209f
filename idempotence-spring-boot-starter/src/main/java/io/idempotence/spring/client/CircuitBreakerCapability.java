package io.idempotence.spring.client;

import feign.Capability;
import feign.Contract;
import feign.Feign;
import feign.InvocationHandlerFactory;
import feign.MethodMetadata;
import java.util.List;

/**
 * The Feign capability for a circuit breaker around a client. While the client is built, it checks its time limits, and lets its fallbacks
 * know about unknown outcomes. Public because Feign calls it by reflection.
 */
public final class CircuitBreakerCapability implements Capability {
    private final TimeLimits limits;
    private final Feign.Builder builder;
    private volatile List<MethodMetadata> methods = List.of();

    CircuitBreakerCapability(TimeLimits limits, Feign.Builder builder) {
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
            dispatch.keySet()
                    .forEach(method -> methods.stream()
                            .filter(parsed -> parsed.configKey().equals(Feign.configKey(target.type(), method)))
                            .findFirst()
                            .ifPresent(parsed -> limits.check(
                                    target, method, parsed.template().method())));
            FeignBuilders.replaceBreakers(builder, FallbackBreakers::new);
            return factory.create(target, dispatch);
        };
    }
}
