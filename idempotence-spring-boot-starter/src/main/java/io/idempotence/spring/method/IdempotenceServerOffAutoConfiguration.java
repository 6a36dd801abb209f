package io.idempotence.spring.method;

import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Role;

/**
 * The auto-configuration of an application whose provider half is switched off by {@code idempotence.server.enabled=false}. It warns at the
 * start of every bean method with {@code @Idempotent}: such methods run unprotected.
 */
@AutoConfiguration
@ConditionalOnProperty(prefix = "idempotence.server", name = "enabled", havingValue = "false")
public class IdempotenceServerOffAutoConfiguration {
    @Bean
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    static UnprotectedOperations idempotenceUnprotectedOperations() {
        return new UnprotectedOperations();
    }
}
