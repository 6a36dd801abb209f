package io.idempotence.spring.actuate;

import io.micrometer.observation.ObservationRegistry;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.AutoConfigureOrder;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.context.annotation.Bean;
import org.springframework.core.Ordered;

/**
 * The auto-configuration of observations: {@code idempotence.client.call} around a call of a consumer, and {@code
 * idempotence.server.attempt} around an attempt at a provider. It applies with a bean of {@link ObservationRegistry}.
 */
@AutoConfiguration(
        afterName = {
            "org.springframework.boot.actuate.autoconfigure.observation.ObservationAutoConfiguration",
            "org.springframework.boot.micrometer.observation.autoconfigure.ObservationAutoConfiguration"
        })
@AutoConfigureOrder(Ordered.LOWEST_PRECEDENCE) // so that all others keep their places
@ConditionalOnClass(ObservationRegistry.class)
@ConditionalOnBean(ObservationRegistry.class)
public class IdempotenceObservationAutoConfiguration {
    @Bean
    ServerObservations idempotenceServerObservations(ObservationRegistry registry) {
        return new ServerObservations(registry);
    }

    @Bean
    ClientObservations idempotenceClientObservations(ObservationRegistry registry) {
        return new ClientObservations(registry);
    }
}
