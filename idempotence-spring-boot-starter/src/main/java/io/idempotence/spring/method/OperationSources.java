package io.idempotence.spring.method;

import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.spring.internal.UsualPolicy;
import io.idempotence.spring.server.IdempotenceServerProperties;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.beans.factory.config.EmbeddedValueResolver;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.context.properties.bind.DataObjectPropertyName;
import org.springframework.core.env.Environment;
import org.springframework.util.ClassUtils;
import org.springframework.util.StringValueResolver;

/** The sources of what operations need from the application. Beans are looked up when they are needed. */
final class OperationSources {
    private final ConfigurableListableBeanFactory beans;
    private final Environment environment;
    private final StringValueResolver placeholders;

    OperationSources(ConfigurableListableBeanFactory beans, Environment environment) {
        this.beans = beans;
        this.environment = environment;
        this.placeholders = new EmbeddedValueResolver(beans);
    }

    OperationFaults faultsAt(Class<?> type, Method method, List<OperationFault> all) {
        return new OperationFaults(
                ClassUtils.getUserClass(type).getSimpleName() + "." + method.getName(), placeholders, all);
    }

    Idempotence idempotence() {
        return beans.getBean(Idempotence.class);
    }

    /** The policy of operations that set nothing. */
    IdempotencePolicy policy() {
        return UsualPolicy.of(idempotence());
    }

    Duration maxWait() {
        return properties().maxWait();
    }

    /** @param name the name of a property below {@code idempotence.server}, in camel case or with hyphens */
    boolean isSet(String name) {
        return Binder.get(environment)
                .bind("idempotence.server." + DataObjectPropertyName.toDashedForm(name), String.class)
                .isBound();
    }

    IdempotenceServerProperties properties() {
        return beans.getBean(IdempotenceServerProperties.class);
    }

    IdempotencePolicy.@Nullable Recovery recovery() {
        return beans.getBeanProvider(IdempotencePolicy.Recovery.class).getIfUnique();
    }

    ConfigurableListableBeanFactory beans() {
        return beans;
    }
}
