package io.idempotence.spring.form;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.server.Idempotence;
import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.spring.FailingStart;
import io.idempotence.spring.server.IdempotenceServerAutoConfiguration;
import java.time.Duration;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.runner.WebApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.boot.web.servlet.DelegatingFilterProxyRegistrationBean;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.thymeleaf.dialect.IDialect;

/** The start of an application with form tokens: the place of their filter, their settings, and when they are on. */
@ExtendWith(OutputCaptureExtension.class)
class FormStartTest {
    private final WebApplicationContextRunner application = new WebApplicationContextRunner()
            .withPropertyValues("idempotence.server.storage=memory")
            .withConfiguration(AutoConfigurations.of(
                    IdempotenceServerAutoConfiguration.class, IdempotenceFormAutoConfiguration.class));

    @Test
    void theFilterIsDirectlyInFrontOfTheIdempotenceFilter() {
        application.run(context -> assertThat(context.getBean("idempotenceFormFilter", FilterRegistrationBean.class)
                        .getOrder())
                .isEqualTo(context.getBean("idempotenceFilterRegistration", FilterRegistrationBean.class)
                                .getOrder()
                        - 1));
        application
                .withPropertyValues("idempotence.server.filter-order=7")
                .run(context -> assertThat(context.getBean("idempotenceFormFilter", FilterRegistrationBean.class)
                                .getOrder())
                        .isEqualTo(6));
    }

    @Test
    void theFilterIsInFrontOfTheFirstIdempotenceFilterHoweverItIsRegistered() {
        application
                .withBean("last", FilterRegistrationBean.class, () -> registration(9))
                .withBean("first", FilterRegistrationBean.class, () -> registration(7))
                .run(context -> {
                    FilterRegistrationBean<?> form =
                            context.getBean("idempotenceFormFilter", FilterRegistrationBean.class);
                    assertThat(form.getOrder()).isEqualTo(6);
                    assertThat(form.isMatchAfter()).isFalse();
                });
    }

    private static FilterRegistrationBean<?> registration(int order) {
        FilterRegistrationBean<?> registration =
                new FilterRegistrationBean<>(IdempotenceFilter.builder(Idempotence.over(IdempotenceStorage.inMemory()))
                        .build());
        registration.setOrder(order);
        return registration;
    }

    private static DelegatingFilterProxyRegistrationBean security() {
        DelegatingFilterProxyRegistrationBean security =
                new DelegatingFilterProxyRegistrationBean("springSecurityFilterChain");
        security.setOrder(-100);
        return security;
    }

    @Test
    void theFilterIsBehindSpringSecurity(CapturedOutput output) {
        assertThat(reportOf(output, Secured.class, "idempotence.server.filter-order=-99"))
                .contains("The property idempotence.server.filter-order has the value '-99' (")
                .contains("tokens could be made and checked without a user.")
                .containsSubsequence("Action:", "Set idempotence.server.filter-order to at least -98, or set");
        WebApplicationContextRunner secured =
                application.withBean(DelegatingFilterProxyRegistrationBean.class, FormStartTest::security);
        secured.withPropertyValues("idempotence.server.filter-order=-98")
                .run(context -> assertThat(context).hasNotFailed());
        secured.withPropertyValues("idempotence.server.filter-order=-99", "idempotence.form.enabled=false")
                .run(context -> assertThat(context).hasNotFailed());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "expires-after | 90m | it must be at least 1m, and at most the retention, which is 1h; | Lower idempotence.form.",
                "expires-after | 90m | a form that can be submitted after its ID is forgotten could run twice. | Lower idempotence",
                "expires-after | 30s | it must be at least 1m | Lower idempotence.form.expires-after, or raise idempotence.server",
                "max-wait      | -1s | it must be 0s to 10m, in whole seconds. | Set idempotence.form.max-wait to a value such as 10s",
                "max-wait      | 11m | it must be 0s to 10m, in whole seconds. | Set idempotence.form.max-wait to a value such as 10s",
                "max-wait      | 500ms | it must be 0s to 10m, in whole seconds. | Set idempotence.form.max-wait to a value such as",
                "max-wait      | soon | cannot be read. | Allowed: a duration, such as 500ms, 10s, 5m or 24h."
            })
    void aDurationThatIsNotAllowedIsReportedAsItIsWritten(
            String property, String value, String reason, String action, CapturedOutput output) {
        assertThat(reportOf(
                        output,
                        Application.class,
                        "idempotence.server.policy.retention=1h",
                        "idempotence.form." + property + "=" + value))
                .contains("idempotence.form." + property)
                .contains("'" + value + "' (")
                .contains(reason)
                .containsSubsequence("Action:", action);
    }

    @Test
    void anUnknownPropertyFailsTheStart(CapturedOutput output) {
        assertThat(reportOf(output, Application.class, "idempotence.form.max-waits=1s"))
                .contains("There is no such property: idempotence.form.max-waits = '1s' (")
                .containsSubsequence("Action:", "Nearest: idempotence.form.max-wait.");
    }

    private static String reportOf(CapturedOutput output, Class<?> application, String... properties) {
        return FailingStart.report(
                output,
                new Class<?>[] {application},
                Stream.concat(Stream.of("idempotence.server.storage=memory"), Stream.of(properties))
                        .map(property -> "--" + property)
                        .toArray(String[]::new));
    }

    @Configuration(proxyBeanMethods = false)
    @ImportAutoConfiguration({IdempotenceServerAutoConfiguration.class, IdempotenceFormAutoConfiguration.class})
    static class Application {}

    @Configuration(proxyBeanMethods = false)
    @ImportAutoConfiguration({IdempotenceServerAutoConfiguration.class, IdempotenceFormAutoConfiguration.class})
    static class Secured {
        @Bean
        DelegatingFilterProxyRegistrationBean security() {
            return FormStartTest.security();
        }
    }

    @Test
    void aShortRetentionShortensTheLifeOfForms() {
        application
                .withPropertyValues("idempotence.server.policy.retention=1h")
                .run(context -> assertThat(context).hasNotFailed());
        assertThat(new FormProperties(null, null, Duration.ZERO).lifetime(Duration.ofHours(1)))
                .hasHours(1);
        assertThat(new FormProperties(null, null, Duration.ZERO).lifetime(Duration.ofDays(1)))
                .hasHours(12);
    }

    @Test
    void withoutThymeleafItIsSwitchedOn() {
        WebApplicationContextRunner plain = application.withClassLoader(new FilteredClassLoader("org.thymeleaf"));
        plain.run(context -> assertThat(context).hasNotFailed().doesNotHaveBean("idempotenceFormFilter"));
        plain.withPropertyValues("idempotence.form.enabled=true")
                .run(context -> assertThat(context).hasNotFailed().hasBean("idempotenceFormFilter"));
        // The console has a form.
        plain.withPropertyValues("idempotence.console.enabled=true", "idempotence.console.writes=true")
                .run(context -> assertThat(context).hasNotFailed().hasBean("idempotenceFormFilter"));
        application.run(context -> assertThat(context).hasSingleBean(IDialect.class));
    }

    @Test
    void itCanBeSwitchedOff() {
        application
                .withPropertyValues("idempotence.form.enabled=false")
                .run(context -> assertThat(context).doesNotHaveBean("idempotenceFormFilter"));
    }
}
