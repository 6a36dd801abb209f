package io.idempotence.spring.actuate;

import io.idempotence.server.Idempotence;
import io.idempotence.spring.method.IdempotentOperations;
import io.idempotence.spring.server.IdempotenceServerAutoConfiguration;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.actuate.autoconfigure.endpoint.condition.ConditionalOnAvailableEndpoint;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.AutoConfigureOrder;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.context.annotation.Bean;
import org.springframework.core.Ordered;

/**
 * The auto-configuration of the Actuator endpoint {@code idempotence}, which finds, lists, resolves and deletes records.
 *
 * <p>It applies with Actuator and an {@link Idempotence}, if the endpoint is exposed. It only reads unless {@code
 * management.endpoint.idempotence.access} is {@code unrestricted}.
 */
@AutoConfiguration(after = IdempotenceServerAutoConfiguration.class)
@AutoConfigureOrder(Ordered.LOWEST_PRECEDENCE) // so that all others keep their places
@ConditionalOnClass(ConditionalOnAvailableEndpoint.class)
@ConditionalOnBean(Idempotence.class)
public class IdempotenceActuatorAutoConfiguration {
    @Bean
    @ConditionalOnAvailableEndpoint
    IdempotenceEndpoint idempotenceEndpoint(
            ObjectProvider<Idempotence> idempotence, ObjectProvider<IdempotentOperations> operations) {
        return new IdempotenceEndpoint(
                () -> idempotence.getObject().admin(),
                () -> operations
                        .orderedStream()
                        .flatMap(bean -> bean.all().stream())
                        .toList());
    }
}
