package io.idempotence.spring.form;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.server.Idempotence;
import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.spring.server.IdempotenceServerAutoConfiguration;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.runner.WebApplicationContextRunner;
import org.springframework.boot.web.servlet.DelegatingFilterProxyRegistrationBean;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.thymeleaf.dialect.IDialect;

/** What is there of form tokens in an application. */
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
    void theFilterIsInFrontOfTheFirstIdempotenceFilterWhoeverRegistersIt() {
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

    @Test
    void theFilterIsBehindSpringSecurity() {
        WebApplicationContextRunner secured = application.withBean(DelegatingFilterProxyRegistrationBean.class, () -> {
            DelegatingFilterProxyRegistrationBean security =
                    new DelegatingFilterProxyRegistrationBean("springSecurityFilterChain");
            security.setOrder(-100);
            return security;
        });
        secured.withPropertyValues("idempotence.server.filter-order=-99")
                .run(context -> assertThat(context)
                        .getFailure()
                        .rootCause()
                        .hasMessageContaining("Property idempotence.server.filter-order with value '-99' is invalid")
                        .hasMessageContaining("Set it to at least -98"));
        secured.withPropertyValues("idempotence.server.filter-order=-98")
                .run(context -> assertThat(context).hasNotFailed());
        secured.withPropertyValues("idempotence.server.filter-order=-99", "idempotence.form.enabled=false")
                .run(context -> assertThat(context).hasNotFailed());
    }

    @Test
    void aFormMustNotOutliveTheRecordOfItsId() {
        application
                .withPropertyValues("idempotence.server.policy.retention=1h", "idempotence.form.expires-after=2h")
                .run(context -> assertThat(context)
                        .getFailure()
                        .rootCause()
                        .hasMessageContaining("idempotence.form.expires-after")
                        .hasMessageContaining(
                                "A form that can be submitted after its ID is forgotten could run twice"));
    }

    @Test
    void badDurationsAreToldAsTheyAreWritten() {
        application
                .withPropertyValues("idempotence.form.expires-after=90m", "idempotence.server.policy.retention=1h")
                .run(context -> assertThat(context)
                        .getFailure()
                        .rootCause()
                        .hasMessageContaining("Property idempotence.form.expires-after with value '90m' is invalid")
                        .hasMessageContaining("at most the retention, which is 1h"));
        for (String wait : new String[] {"-1s", "11m"}) {
            application
                    .withPropertyValues("idempotence.form.max-wait=" + wait)
                    .run(context -> assertThat(context)
                            .getFailure()
                            .rootCause()
                            .hasMessageContaining(
                                    "Property idempotence.form.max-wait with value '" + wait + "' is invalid")
                            .hasMessageContaining("It must be 0s to 10m"));
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
