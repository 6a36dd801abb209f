package io.idempotence.spring.actuate;

import io.idempotence.server.IdempotenceAdmin;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.actuate.autoconfigure.endpoint.condition.ConditionalOnAvailableEndpoint;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.context.annotation.Bean;

/** Auto-configuration of the Actuator endpoint {@code idempotence}. */
@AutoConfiguration(after = IdempotenceAdminAutoConfiguration.class)
@ConditionalOnClass(ConditionalOnAvailableEndpoint.class)
@ConditionalOnBean(IdempotenceAdmin.class)
public class IdempotenceActuatorAutoConfiguration {
    /** Created by Spring. */
    public IdempotenceActuatorAutoConfiguration() {}

    @Bean
    @ConditionalOnAvailableEndpoint
    IdempotenceEndpoint idempotenceEndpoint(IdempotenceAdmin admin, ObjectProvider<ProtectedOperations> operations) {
        return new IdempotenceEndpoint(
                admin,
                () -> operations
                        .orderedStream()
                        .flatMap(bean -> bean.operations().stream())
                        .toList());
    }
}
