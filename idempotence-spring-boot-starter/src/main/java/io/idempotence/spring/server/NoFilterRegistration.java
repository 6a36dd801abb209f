package io.idempotence.spring.server;

import io.idempotence.server.servlet.IdempotenceFilter;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.ConditionContext;
import org.springframework.context.annotation.ConfigurationCondition;
import org.springframework.core.ResolvableType;
import org.springframework.core.type.AnnotatedTypeMetadata;

/** The condition that the application registers no {@link IdempotenceFilter} itself. */
final class NoFilterRegistration implements ConfigurationCondition {
    @Override
    public ConfigurationPhase getConfigurationPhase() {
        return ConfigurationPhase.REGISTER_BEAN;
    }

    @Override
    public boolean matches(ConditionContext context, AnnotatedTypeMetadata metadata) {
        ListableBeanFactory beans = context.getBeanFactory();
        ResolvableType registration =
                ResolvableType.forClassWithGenerics(FilterRegistrationBean.class, IdempotenceFilter.class);
        return beans == null || beans.getBeanNamesForType(registration, true, false).length == 0;
    }
}
