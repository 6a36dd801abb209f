package io.idempotence.spring.method;

import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Role;

/** Auto-configuration of an application whose provider half is switched off. */
@AutoConfiguration
@ConditionalOnProperty(prefix = "idempotence.server", name = "enabled", havingValue = "false")
public class IdempotenceServerOffAutoConfiguration {
    @Bean
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    static UnprotectedOperations idempotenceUnprotectedOperations() {
        return new UnprotectedOperations();
    }
}
