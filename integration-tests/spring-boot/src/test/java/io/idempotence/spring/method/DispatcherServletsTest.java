package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.server.Idempotence;
import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.spring.server.IdempotenceFilterRegistrationBean;
import java.util.Set;
import java.util.UUID;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.boot.web.servlet.ServletRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.web.context.WebApplicationContext;
import org.springframework.web.context.support.AnnotationConfigWebApplicationContext;
import org.springframework.web.servlet.DispatcherServlet;

/** An application with a second DispatcherServlet, which serves the same handlers under another prefix. */
@Tag("all")
@ExtendWith(OutputCaptureExtension.class)
class DispatcherServletsTest {
    @Import(CustomFilterRegistrationsTest.Payments.class)
    static class TwoServlets {
        @Bean
        ServletRegistrationBean<DispatcherServlet> second(
                WebApplicationContext context,
                @Qualifier("dispatcherServletRegistration") ServletRegistrationBean<?> first,
                @Value("${first-enabled}") boolean enabled) {
            first.setEnabled(enabled);
            ServletRegistrationBean<DispatcherServlet> second =
                    new ServletRegistrationBean<>(new DispatcherServlet(context), "/api/*");
            second.setName("api");
            return second;
        }

        @Bean
        FilterRegistrationBean<IdempotenceFilter> own(
                Idempotence idempotence,
                @Value("${servlets}") Set<String> servlets,
                @Value("${patterns:}") Set<String> patterns) {
            FilterRegistrationBean<IdempotenceFilter> own = new FilterRegistrationBean<>(
                    IdempotenceFilter.builder(idempotence).build());
            own.setServletNames(servlets);
            own.setUrlPatterns(patterns);
            return own;
        }
    }

    /** It counted as a filter that covers nothing, and the start failed. */
    @Test
    void aFilterOnTheNameOfTheServletThatServesAHandlerCoversIt() {
        try (TestServer server = TestServer.start(TwoServlets.class, "--first-enabled=false", "--servlets=api")) {
            String id = UUID.randomUUID().toString();
            assertThat(server.post("/api/payments", null).refusal()).isEqualTo("key-missing");
            TestServer.Response first = server.post("/api/payments", id);
            assertThat(first.body()).startsWith("paid");
            assertThat(server.post("/api/payments", id).same()).isEqualTo(first.same());
            assertThat(server.post("/payments", id).status()).isEqualTo(404);
        }
    }

    /** A handler ran unprotected under the prefix of the other servlet. */
    @Test
    void aHandlerThatIsCoveredBehindOneOfItsServletsOnlyFailsTheStart(CapturedOutput output) {
        assertThatThrownBy(() ->
                        TestServer.start(TwoServlets.class, "--first-enabled=true", "--servlets=dispatcherServlet"))
                .isNotNull();
        assertThat(output)
                .contains("Payments.pay: no idempotence filter covers /api/payments: 'own' is on dispatcherServlet.")
                .contains("Add a URL pattern for /api/payments to 'own'");
    }

    @Test
    void aFilterMayCoverOneServletByNameAndTheOtherByPattern() {
        try (TestServer server = TestServer.start(
                TwoServlets.class, "--first-enabled=true", "--servlets=dispatcherServlet", "--patterns=/api/*")) {
            assertThat(server.post("/payments", null).refusal()).isEqualTo("key-missing");
            assertThat(server.post("/api/payments", null).refusal()).isEqualTo("key-missing");
        }
    }

    @Import(CustomFilterRegistrationsTest.Payments.class)
    static class NameOfServlet {
        @Bean
        IdempotenceFilterRegistrationBean own(Idempotence idempotence) {
            IdempotenceFilterRegistrationBean own = new IdempotenceFilterRegistrationBean(
                    IdempotenceFilter.builder(idempotence).build(), "/orders/*");
            own.setServletNames(Set.of("dispatcherServlet"));
            return own;
        }
    }

    /** The name was ignored, and the handler ran unprotected. */
    @Test
    @DisplayName("P6: a registration by URL patterns refuses the name of a servlet")
    void aRegistrationByUrlPatternsRefusesTheNameOfAServlet(CapturedOutput output) {
        assertThatThrownBy(() -> TestServer.start(NameOfServlet.class)).isNotNull();
        assertThat(output)
                .contains("An IdempotenceFilterRegistrationBean has servlet names")
                .contains("Pass the URL patterns of the servlets instead");
    }

    @Import(CustomFilterRegistrationsTest.Payments.class)
    static class ChildContext {
        @Bean
        ServletRegistrationBean<DispatcherServlet> ofChild() {
            AnnotationConfigWebApplicationContext child = new AnnotationConfigWebApplicationContext();
            child.register(Nothing.class);
            ServletRegistrationBean<DispatcherServlet> servlet =
                    new ServletRegistrationBean<>(new DispatcherServlet(child), "/child/*");
            servlet.setName("child");
            return servlet;
        }

        @Bean
        IdempotenceFilterRegistrationBean own(Idempotence idempotence) {
            return new IdempotenceFilterRegistrationBean(
                    IdempotenceFilter.builder(idempotence).build(), "/payments/*", "/child/*");
        }
    }

    static class Nothing {}

    @Test
    void aFilterCoversTheHandlersThatAServletWithAChildContextServes() {
        try (TestServer server = TestServer.start(ChildContext.class)) {
            String id = UUID.randomUUID().toString();
            assertThat(server.post("/child/payments", null).refusal()).isEqualTo("key-missing");
            TestServer.Response first = server.post("/child/payments", id);
            assertThat(first.body()).startsWith("paid");
            assertThat(server.post("/child/payments", id).same()).isEqualTo(first.same());
        }
    }
}
