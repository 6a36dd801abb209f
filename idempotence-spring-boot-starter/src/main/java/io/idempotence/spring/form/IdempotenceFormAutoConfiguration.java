package io.idempotence.spring.form;

import io.idempotence.server.Idempotence;
import io.idempotence.spring.server.IdempotenceFilterRegistrationBean;
import io.idempotence.spring.server.IdempotenceServerAutoConfiguration;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import java.time.Clock;
import java.util.Comparator;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.Ordered;
import org.springframework.web.servlet.LocaleResolver;
import org.thymeleaf.dialect.IDialect;

/** Auto-configuration of one-time tokens for HTML forms. */
@AutoConfiguration(after = IdempotenceServerAutoConfiguration.class)
@ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
@ConditionalOnClass({Filter.class, LocaleResolver.class})
@ConditionalOnBean(Idempotence.class)
@ConditionalOnProperty(prefix = "idempotence.form", name = "enabled", matchIfMissing = true)
@EnableConfigurationProperties(FormProperties.class)
public class IdempotenceFormAutoConfiguration {
    @Bean
    @ConditionalOnMissingBean
    FormProblemPage idempotenceFormProblemPage() {
        return new StandardFormProblemPage();
    }

    @Bean
    FormTokens idempotenceFormTokens(FormProperties properties, Idempotence idempotence) {
        return new FormTokens(properties.lifetime(idempotence.policy().retention()), Clock.systemUTC());
    }

    /** Directly in front of the idempotence filter, and so behind Spring Security: a token belongs to a user. */
    @Bean
    FilterRegistrationBean<FormTokenFilter> idempotenceFormFilter(
            FormProperties properties,
            FormTokens tokens,
            FormProblemPage page,
            ApplicationContext context,
            ObjectProvider<LocaleResolver> locales,
            ObjectProvider<IdempotenceFilterRegistrationBean> idempotenceFilters) {
        FormProblems problems = new FormProblems(
                context,
                request -> {
                    LocaleResolver resolver = locales.getIfAvailable();
                    return resolver == null ? request.getLocale() : resolver.resolveLocale(request);
                },
                page);
        FilterRegistrationBean<FormTokenFilter> registration =
                new FilterRegistrationBean<>(new FormTokenFilter(tokens, problems, properties.maxWait()));
        registration.setName("idempotenceForm");
        registration.setDispatcherTypes(DispatcherType.REQUEST);
        registration.setOrder(Ordered.LOWEST_PRECEDENCE - 1);
        registration.setMatchAfter(true);
        idempotenceFilters.stream()
                .min(Comparator.comparingInt(FilterRegistrationBean::getOrder))
                .ifPresent(first -> {
                    registration.setOrder(first.getOrder() - 1);
                    registration.setMatchAfter(first.isMatchAfter());
                });
        return registration;
    }

    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(IDialect.class)
    static class ThymeleafConfiguration {
        @Bean
        IdempotenceDialect idempotenceDialect() {
            return new IdempotenceDialect();
        }
    }
}
