package io.idempotence.spring.server;

import org.springframework.boot.actuate.autoconfigure.health.ConditionalOnEnabledHealthIndicator;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.AutoConfigureOrder;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.Ordered;

/**
 * The auto-configuration of the health indicator {@code idempotence}: whether the storage of the server half can be used.
 *
 * <p>It applies with Actuator and the {@code Idempotence} of {@link IdempotenceServerAutoConfiguration}, unless {@code
 * management.health.idempotence.enabled} is false. A bean named {@code idempotenceHealthIndicator} replaces it. Each check writes to the
 * storage. An application that does not use the storage has the status UNKNOWN.
 */
@AutoConfiguration(after = IdempotenceServerAutoConfiguration.class)
@AutoConfigureOrder(Ordered.LOWEST_PRECEDENCE) // so that all others keep their places
@ConditionalOnBean(StorageHealth.class)
public class IdempotenceServerHealthAutoConfiguration {
    /** The health indicator on Spring Boot 4. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(name = "org.springframework.boot.health.contributor.HealthIndicator")
    @org.springframework.boot.health.autoconfigure.contributor.ConditionalOnEnabledHealthIndicator("idempotence")
    static class Boot4 {
        @Bean
        @ConditionalOnMissingBean(name = "idempotenceHealthIndicator")
        org.springframework.boot.health.contributor.HealthIndicator idempotenceHealthIndicator(StorageHealth storage) {
            return () -> {
                StorageHealth.HealthResult result = storage.check();
                var health = result.isUp() == null
                        ? org.springframework.boot.health.contributor.Health.unknown()
                        : result.isUp()
                                ? org.springframework.boot.health.contributor.Health.up()
                                : org.springframework.boot.health.contributor.Health.down();
                return health.withDetails(result.details()).build();
            };
        }
    }

    /** The health indicator on Spring Boot 3. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(name = "org.springframework.boot.actuate.health.HealthIndicator")
    @ConditionalOnEnabledHealthIndicator("idempotence")
    static class Boot3 {
        @Bean
        @ConditionalOnMissingBean(name = "idempotenceHealthIndicator")
        org.springframework.boot.actuate.health.HealthIndicator idempotenceHealthIndicator(StorageHealth storage) {
            return () -> {
                StorageHealth.HealthResult result = storage.check();
                var health = result.isUp() == null
                        ? org.springframework.boot.actuate.health.Health.unknown()
                        : result.isUp()
                                ? org.springframework.boot.actuate.health.Health.up()
                                : org.springframework.boot.actuate.health.Health.down();
                return health.withDetails(result.details()).build();
            };
        }
    }
}
