package io.idempotence.spring.client;

import feign.Capability;
import feign.Contract;
import feign.Feign;
import feign.InvocationHandlerFactory;
import feign.MethodMetadata;
import java.util.List;

/** The Feign capability that checks a client's time limits while it is built. Public because Feign calls it by reflection. */
public final class TimeLimitCapability implements Capability {
    private final TimeLimits limits;
    private volatile List<MethodMetadata> methods = List.of();

    TimeLimitCapability(TimeLimits limits) {
        this.limits = limits;
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
            return factory.create(target, dispatch);
        };
    }
}
