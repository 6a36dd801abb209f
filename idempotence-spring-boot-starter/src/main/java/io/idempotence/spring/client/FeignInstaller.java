package io.idempotence.spring.client;

import feign.Client;
import feign.Feign;
import feign.RequestInterceptor;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.feign.IdempotentFeign;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.cloud.openfeign.FeignBuilderCustomizer;
import org.springframework.cloud.openfeign.FeignCircuitBreaker;
import org.springframework.core.Ordered;
import org.springframework.util.ClassUtils;

/**
 * The installation of the client half in every Feign client of the application. It is the last customizer, so that its capability is
 * outermost. Its interceptor is the first one, so that interceptors that sign a request see the ID.
 */
final class FeignInstaller implements FeignBuilderCustomizer, Ordered {
    private static final boolean MAY_BE_BALANCED = ClassUtils.isPresent(
            "org.springframework.cloud.loadbalancer.support.LoadBalancerClientFactory",
            FeignInstaller.class.getClassLoader());

    private final IdempotenceClientConfig config;
    private final @Nullable TimeLimits limits;

    /** @param limits compares deadlines with circuit breakers; null if there are none */
    FeignInstaller(IdempotenceClientConfig config, @Nullable TimeLimits limits) {
        this.config = config;
        this.limits = limits;
    }

    @Override
    public int getOrder() {
        return LOWEST_PRECEDENCE;
    }

    @Override
    public void customize(Feign.Builder builder) {
        boolean installed =
                elements(builder, "capabilities").stream().anyMatch(IdempotentFeign.Installed.class::isInstance);
        if (builder instanceof FeignCircuitBreaker.Builder) {
            // The application's own installation may have other deadlines.
            builder.addCapability(new CircuitBreakerCapability(installed ? null : limits, builder));
        }
        if (installed) {
            return;
        }
        if (MAY_BE_BALANCED && SpringInternals.optional(builder, "client") instanceof Client client) {
            builder.client(OnceBalancedClient.of(client));
        }
        List<?> others = List.copyOf(elements(builder, "requestInterceptors"));
        builder.requestInterceptors(List.of());
        IdempotentFeign.install(builder, config);
        others.forEach(one -> builder.requestInterceptor((RequestInterceptor) one));
    }

    private static List<?> elements(Feign.Builder builder, String field) {
        return (List<?>) SpringInternals.required(builder, field);
    }
}
