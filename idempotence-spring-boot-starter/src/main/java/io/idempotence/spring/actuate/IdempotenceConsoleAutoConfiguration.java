package io.idempotence.spring.actuate;

import io.idempotence.server.Idempotence;
import io.idempotence.spring.form.FormTokens;
import io.idempotence.spring.form.IdempotenceFormAutoConfiguration;
import io.idempotence.spring.internal.ConditionalOnSwitch;
import io.idempotence.spring.internal.SetUpException;
import io.idempotence.spring.server.IdempotenceServerAutoConfiguration;
import java.time.Clock;
import java.util.Map;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.AutoConfigureOrder;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.core.Ordered;
import org.springframework.web.servlet.HandlerMapping;
import org.springframework.web.servlet.handler.SimpleUrlHandlerMapping;
import org.springframework.web.util.UrlPathHelper;

/**
 * The auto-configuration of the console, a page for operators that shows records and resolves those that are abandoned or unknown.
 *
 * <p>It applies to servlet applications with Spring MVC and an {@link Idempotence}, if {@code idempotence.console.enabled} is true. Its
 * properties are {@code idempotence.console.*}. The start fails without Spring Security, unless {@code
 * idempotence.console.without-security} is true, and if {@code idempotence.console.writes} is true and form tokens are switched off.
 */
@AutoConfiguration(after = {IdempotenceServerAutoConfiguration.class, IdempotenceFormAutoConfiguration.class})
@AutoConfigureOrder(Ordered.LOWEST_PRECEDENCE) // so that all others keep their places
@ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
@ConditionalOnClass(HandlerMapping.class)
@ConditionalOnBean(Idempotence.class)
@ConditionalOnSwitch(value = "idempotence.console.enabled", byDefault = false)
@EnableConfigurationProperties(ConsoleProperties.class)
public class IdempotenceConsoleAutoConfiguration {
    private static final String SECURITY = "springSecurityFilterChain";

    @Bean
    EventHistory idempotenceEventHistory() {
        return new EventHistory(Clock.systemUTC());
    }

    @Bean
    UncertainCalls idempotenceUncertainCalls() {
        return new UncertainCalls();
    }

    @Bean
    HandlerMapping idempotenceConsole(
            ObjectProvider<Idempotence> idempotence,
            ConsoleProperties properties,
            EventHistory history,
            UncertainCalls calls,
            ObjectProvider<FormTokens> tokens,
            ListableBeanFactory beans) {
        if (!properties.path().matches("(/[A-Za-z0-9._~-]+)+")) {
            throw SetUpException.ofProperty(
                    "idempotence.console.path",
                    properties.path(),
                    "it must be a path such as /idempotence or /admin/idempotence, without a slash at its end",
                    "Change the value of idempotence.console.path.",
                    null);
        }
        if (!properties.withoutSecurity() && !beans.containsBean(SECURITY)) {
            throw SetUpException.ofProperty(
                    "idempotence.console.enabled",
                    true,
                    "the console shows and resolves records, and this application has no Spring Security that protects it",
                    "Add spring-boot-starter-security and give operators the role '" + properties.role()
                            + "', or set idempotence.console.without-security=true if something in front of the application"
                            + " lets only operators in.",
                    null);
        }
        if (properties.writes() && beans.getBeanNamesForType(FormTokens.class).length == 0) {
            throw SetUpException.ofProperty(
                    "idempotence.console.writes",
                    true,
                    "the form that resolves a record is protected by a form token, and these are switched off",
                    "Remove idempotence.form.enabled=false, or idempotence.console.writes.",
                    null);
        }
        // A record is resolved once, with or without an idempotence filter in front.
        tokens.ifAvailable(some -> some.leaveToHandler(request ->
                UrlPathHelper.defaultInstance.getLookupPathForRequest(request).equals(properties.path() + "/resolve")));
        ConsoleHandler handler = new ConsoleHandler(
                () -> idempotence.getObject().admin(),
                properties,
                history,
                calls,
                properties.withoutSecurity() ? request -> {} : new ConsoleSecurity(properties.role())::check);
        SimpleUrlHandlerMapping mapping = new SimpleUrlHandlerMapping(
                Map.of(properties.path(), handler, properties.path() + "/resolve", handler));
        // Before a mapping of the application that takes every path.
        mapping.setOrder(-1);
        return mapping;
    }
}
