package io.idempotence.spring.method;

import io.idempotence.spring.internal.ConditionalOnSwitch;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.AutoConfigureOrder;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Role;
import org.springframework.core.Ordered;

/**
 * The auto-configuration of an application whose server half is switched off by {@code idempotence.server.enabled=false}. It warns at the
 * start of every bean method with {@code @Idempotent}: such methods run unprotected.
 */
@AutoConfiguration
@AutoConfigureOrder(Ordered.LOWEST_PRECEDENCE) // so that all others keep their places
@ConditionalOnSwitch(value = "idempotence.server.enabled", on = false)
public class IdempotenceMethodOffAutoConfiguration {
    @Bean
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    static UnprotectedOperations idempotenceUnprotectedOperations() {
        return new UnprotectedOperations();
    }
}
