package io.idempotence.spring.form;

import io.idempotence.server.Idempotence;
import io.idempotence.spring.internal.ConditionalOnSwitch;
import io.idempotence.spring.internal.Switches;
import io.idempotence.spring.internal.UsualPolicy;
import io.idempotence.spring.server.IdempotenceServerAutoConfiguration;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import java.time.Clock;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.AutoConfigureOrder;
import org.springframework.boot.autoconfigure.condition.ConditionOutcome;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.autoconfigure.condition.SpringBootCondition;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.ConditionContext;
import org.springframework.context.annotation.Conditional;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.Ordered;
import org.springframework.core.env.Environment;
import org.springframework.core.type.AnnotatedTypeMetadata;
import org.springframework.util.ClassUtils;
import org.springframework.web.servlet.LocaleResolver;
import org.thymeleaf.dialect.IDialect;

/**
 * The auto-configuration of one-time tokens in HTML forms.
 *
 * <p>It applies to servlet applications with Spring MVC and an {@link Idempotence}, if something can put a token into a page: Thymeleaf,
 * {@code idempotence.form.enabled=true}, or a console that may write. {@code idempotence.form.enabled=false} switches it off. Its properties
 * are {@code idempotence.form.*}.
 *
 * <p>Beans: {@link FormTokens}, the filter that takes the token of a request in front of the idempotence filter, a guard behind all filters
 * that refuses a token nobody took, the dialect for Thymeleaf, and {@link FormProblemPage}, which a bean of the application replaces.
 */
@AutoConfiguration(after = IdempotenceServerAutoConfiguration.class)
@AutoConfigureOrder(Ordered.LOWEST_PRECEDENCE) // so that all others keep their places
@ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
@ConditionalOnClass({Filter.class, LocaleResolver.class})
@ConditionalOnBean(Idempotence.class)
@ConditionalOnSwitch("idempotence.form.enabled")
@Conditional(IdempotenceFormAutoConfiguration.HasForms.class)
@EnableConfigurationProperties(FormProperties.class)
public class IdempotenceFormAutoConfiguration {
    @Bean
    @ConditionalOnMissingBean
    FormProblemPage idempotenceFormProblemPage() {
        return new StandardFormProblemPage();
    }

    @Bean
    FormTokens idempotenceFormTokens(FormProperties properties, Idempotence idempotence) {
        return new FormTokens(properties.lifetime(UsualPolicy.of(idempotence).retention()), Clock.systemUTC());
    }

    @Bean
    FormProblems idempotenceFormProblems(
            FormProblemPage page, ApplicationContext context, ObjectProvider<LocaleResolver> locales) {
        return new FormProblems(
                context,
                request -> {
                    LocaleResolver resolver = locales.getIfAvailable();
                    return resolver == null ? request.getLocale() : resolver.resolveLocale(request);
                },
                page);
    }

    /** Directly in front of the first idempotence filter, and so behind Spring Security: a token belongs to a user. */
    @Bean
    FilterRegistrationBean<FormTokenFilter> idempotenceFormFilter(
            FormProperties properties,
            FormTokens tokens,
            FormProblems problems,
            ListableBeanFactory beans,
            Environment environment) {
        boolean lazily = environment.getProperty("spring.servlet.multipart.resolve-lazily", Boolean.class, false);
        FilterRegistrationBean<FormTokenFilter> registration = new FilterRegistrationBean<>(
                new FormTokenFilter(tokens, problems, properties.checkedMaxWait(), !lazily));
        registration.setName("idempotenceForm");
        registration.setDispatcherTypes(DispatcherType.REQUEST, DispatcherType.FORWARD, DispatcherType.ERROR);
        new FormFilterPlace(beans).give(registration);
        return registration;
    }

    /** Behind all other filters. */
    @Bean
    FilterRegistrationBean<FormGuard> idempotenceFormGuard(FormTokens tokens, FormProblems problems) {
        FilterRegistrationBean<FormGuard> registration = new FilterRegistrationBean<>(new FormGuard(tokens, problems));
        registration.setName("idempotenceFormGuard");
        registration.setDispatcherTypes(DispatcherType.REQUEST, DispatcherType.ASYNC, DispatcherType.FORWARD);
        registration.setOrder(Ordered.LOWEST_PRECEDENCE);
        registration.setMatchAfter(true);
        return registration;
    }

    /** Whether anything can put a token into a page. Where nothing can, nothing looks for tokens. */
    static final class HasForms extends SpringBootCondition {
        @Override
        public ConditionOutcome getMatchOutcome(ConditionContext context, AnnotatedTypeMetadata metadata) {
            Environment environment = context.getEnvironment();
            boolean hasForms = isTrue(environment, "idempotence.form.enabled")
                    || isTrue(environment, "idempotence.console.enabled")
                            && isTrue(environment, "idempotence.console.writes")
                    || ClassUtils.isPresent("org.thymeleaf.dialect.IDialect", context.getClassLoader());
            return new ConditionOutcome(hasForms, "idempotence.form.enabled, Thymeleaf or idempotence.console.writes");
        }

        private static boolean isTrue(Environment environment, String property) {
            return Switches.isOn(environment, property, false);
        }
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
