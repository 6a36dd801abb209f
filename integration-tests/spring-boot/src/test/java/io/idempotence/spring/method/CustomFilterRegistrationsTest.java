package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.Idempotent;
import io.idempotence.server.Idempotence;
import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.server.servlet.RequestScope;
import io.idempotence.spring.FailingStart;
import io.idempotence.spring.server.IdempotenceFilterRegistrationBean;
import jakarta.servlet.Filter;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.boot.web.servlet.ServletContextInitializer;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.core.annotation.Order;
import org.springframework.http.ResponseEntity;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.security.web.access.intercept.AuthorizationFilter;
import org.springframework.test.web.servlet.MockMvc;
import org.springframework.test.web.servlet.request.MockMvcRequestBuilders;
import org.springframework.test.web.servlet.setup.MockMvcBuilders;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.bind.annotation.RestControllerAdvice;
import org.springframework.web.context.WebApplicationContext;
import org.springframework.web.servlet.config.annotation.PathMatchConfigurer;
import org.springframework.web.servlet.config.annotation.WebMvcConfigurer;
import org.springframework.web.util.pattern.PathPatternParser;

/** {@code @Idempotent} on handlers, which applies behind every idempotence filter, however it is built and registered. */
@Tag("all")
@ExtendWith(OutputCaptureExtension.class)
class CustomFilterRegistrationsTest {
    private final String id = UUID.randomUUID().toString();

    @RestController
    static class Payments {
        @Idempotent
        @PostMapping("/payments")
        String pay() {
            return "paid " + UUID.randomUUID();
        }

        @PostMapping("/payments/search")
        String search() {
            return "found";
        }
    }

    @RestController
    static class Orders {
        @Idempotent
        @PostMapping("/orders/{number}")
        String order() {
            return "ordered " + UUID.randomUUID();
        }

        @Idempotent(required = false)
        @PostMapping("/orders/drafts")
        String draft() {
            return "drafted " + UUID.randomUUID();
        }
    }

    private static IdempotenceFilter filter(Idempotence idempotence) {
        return IdempotenceFilter.builder(idempotence).idOptional().build();
    }

    @Import(Payments.class)
    static class OwnFilter {
        @Bean
        IdempotenceFilter own(Idempotence idempotence) {
            return filter(idempotence);
        }
    }

    @Import(Payments.class)
    static class PlainRegistration {
        @Bean
        FilterRegistrationBean<IdempotenceFilter> own(Idempotence idempotence) {
            FilterRegistrationBean<IdempotenceFilter> own = new FilterRegistrationBean<>(filter(idempotence));
            own.setServletNames(Set.of("dispatcherServlet"));
            return own;
        }
    }

    /** A filter in front of the one of the auto-configuration, so it decides. */
    @Import(Payments.class)
    static class ByHand {
        @Bean
        ServletContextInitializer own(Idempotence idempotence) {
            return context -> filter(idempotence).install(context, false, "/payments/*");
        }
    }

    @ParameterizedTest
    @ValueSource(classes = {OwnFilter.class, PlainRegistration.class, ByHand.class, InChainOfSecurity.class})
    void anIdIsRequiredWhereTheHandlerRequiresIt(Class<?> application) {
        try (TestServer server = TestServer.start(application)) {
            assertThat(server.post("/payments", null).refusal()).isEqualTo("key-missing");
            assertThat(server.post("/payments/search", null).body()).isEqualTo("found");

            TestServer.Response first = server.post("/payments", id);
            TestServer.Response retry = server.post("/payments", id);
            assertThat(first.status()).isEqualTo(200);
            assertThat(retry.isReplayed()).isTrue();
            assertThat(retry.body()).isEqualTo(first.body());
        }
    }

    @Import({Payments.class, Orders.class})
    static class TwoRegistrations {
        @Bean
        IdempotenceFilterRegistrationBean payments(Idempotence idempotence) {
            return new IdempotenceFilterRegistrationBean(filter(idempotence), "/payments/*");
        }

        @Bean
        IdempotenceFilterRegistrationBean orders(Idempotence idempotence) {
            return new IdempotenceFilterRegistrationBean(
                    IdempotenceFilter.builder(idempotence)
                            .scope(RequestScope.header("X-Tenant"))
                            .build(),
                    "/orders/*");
        }
    }

    @Test
    void eachOfSeveralRegistrationsReadsTheAnnotationsOfItsHandlersAndKeepsItsOwnSettings() {
        try (TestServer server = TestServer.start(TwoRegistrations.class)) {
            assertThat(server.post("/payments", null).refusal()).isEqualTo("key-missing");
            assertThat(server.post("/payments/search", null).body()).isEqualTo("found");
            assertThat(server.post("/orders/7", null).refusal()).isEqualTo("key-missing");
            assertThat(server.post("/orders/drafts", null).body()).startsWith("drafted");

            String ofA = server.post("/orders/7", id, "X-Tenant", "a").body();
            assertThat(server.post("/orders/7", id, "X-Tenant", "a").body()).isEqualTo(ofA);
            assertThat(server.post("/orders/7", id, "X-Tenant", "b").body())
                    .startsWith("ordered")
                    .isNotEqualTo(ofA);
        }
    }

    @Import({Payments.class, Orders.class})
    static class OnePath {
        @Bean
        IdempotenceFilterRegistrationBean ofPayments(Idempotence idempotence) {
            return new IdempotenceFilterRegistrationBean(filter(idempotence), "/payments/*");
        }
    }

    @Test
    void aHandlerThatNoFilterCoversFailsTheStart(CapturedOutput output) {
        assertThat(FailingStart.report(
                        output, new Class<?>[] {OnePath.class, MisusedAnnotationsTest.Application.class}))
                .contains(
                        "Orders.order: no idempotence filter covers /orders/{number}: 'ofPayments' is on /payments/*.")
                .contains("Add a URL pattern for /orders/{number} to 'ofPayments', or register another"
                        + " IdempotenceFilterRegistrationBean.")
                .doesNotContain("Payments.pay");
    }

    /** A container takes such a pattern literally: the handler ran unprotected. */
    @Import(Orders.class)
    static class LiteralPattern {
        @Bean
        FilterRegistrationBean<IdempotenceFilter> literal(Idempotence idempotence) {
            FilterRegistrationBean<IdempotenceFilter> literal = new FilterRegistrationBean<>(filter(idempotence));
            literal.addUrlPatterns("/orders/{number}");
            return literal;
        }
    }

    @Test
    void aPatternThatTheContainerTakesLiterallyCoversNothing(CapturedOutput output) {
        assertThat(FailingStart.report(
                        output, new Class<?>[] {LiteralPattern.class, MisusedAnnotationsTest.Application.class}))
                .contains("Orders.order: no idempotence filter covers /orders/{number}: 'literal' is on"
                        + " /orders/{number}.");
    }

    /** A filter in the chain of Spring Security, with the usual way to keep Spring Boot from registering it once more. */
    @Import(Payments.class)
    static class InChainOfSecurity {
        @Bean
        IdempotenceFilter ownFilter(Idempotence idempotence) {
            return filter(idempotence);
        }

        @Bean
        FilterRegistrationBean<IdempotenceFilter> own(IdempotenceFilter filter) {
            FilterRegistrationBean<IdempotenceFilter> own = new FilterRegistrationBean<>(filter);
            own.setEnabled(false);
            return own;
        }

        @Bean
        @Order(0)
        SecurityFilterChain ofPayments(HttpSecurity http, IdempotenceFilter filter) throws Exception {
            return http.securityMatcher("/payments/**")
                    .authorizeHttpRequests(all -> all.anyRequest().permitAll())
                    .addFilterAfter(filter, AuthorizationFilter.class)
                    .csrf(csrf -> csrf.disable())
                    .build();
        }
    }

    @Import(Payments.class)
    static class BeforeSecurity {
        @Bean
        IdempotenceFilterRegistrationBean own(Idempotence idempotence) {
            IdempotenceFilterRegistrationBean own = new IdempotenceFilterRegistrationBean(filter(idempotence));
            own.setOrder(-200);
            return own;
        }
    }

    @Test
    void aRegistrationBeforeSpringSecurityIsRefusedByItsName(CapturedOutput output) {
        assertThatThrownBy(() -> TestServer.start(BeforeSecurity.class)).isNotNull();
        assertThat(output).contains("Set the order of 'own' to more than -100, or remove it");
    }

    @Import(Payments.class)
    static class Disabled {
        @Bean
        FilterRegistrationBean<IdempotenceFilter> own(Idempotence idempotence) {
            FilterRegistrationBean<IdempotenceFilter> own = new FilterRegistrationBean<>(filter(idempotence));
            own.setEnabled(false);
            return own;
        }
    }

    @Test
    void aDisabledRegistrationWarnsOfTheHandlersThatItLeavesUnprotected(CapturedOutput output) {
        MisusedAnnotationsTest.application()
                .withUserConfiguration(Disabled.class)
                .run(context -> assertThat(context).hasNotFailed());

        assertThat(output)
                .contains("WARN")
                .contains("The registration of the idempotence filter of [Payments.pay] is disabled");
    }

    /** Advice that takes such exceptions for mistakes of callers. */
    @RestControllerAdvice
    static class Disguise {
        @ExceptionHandler
        ResponseEntity<String> conflict(IllegalStateException e) {
            return ResponseEntity.status(409).body("conflict");
        }
    }

    /** Handlers whose paths match more requests than the patterns of the filter. */
    @Import({Payments.class, Disguise.class})
    static class AnyCase implements WebMvcConfigurer {
        @Override
        public void configurePathMatch(PathMatchConfigurer paths) {
            PathPatternParser parser = new PathPatternParser();
            parser.setCaseSensitive(false);
            paths.setPatternParser(parser);
        }

        @Bean
        FilterRegistrationBean<Filter> forwarding() {
            FilterRegistrationBean<Filter> forwarding = new FilterRegistrationBean<>((request, response, chain) ->
                    request.getRequestDispatcher("/payments").forward(request, response));
            forwarding.addUrlPatterns("/v1/payments");
            return forwarding;
        }
    }

    /** A filter behind ours, which has seen a path that needs no ID. */
    @Test
    void aRequestThatIsForwardedBehindTheFilterDoesNotRunWithoutAnId() {
        try (TestServer server = TestServer.start(AnyCase.class, "--idempotence.server.filter-order=-98")) {
            assertThat(server.post("/v1/payments", null).status()).isEqualTo(500);
            TestServer.Response first = server.post("/v1/payments", id);
            assertThat(first.status()).isEqualTo(200);
            assertThat(server.post("/v1/payments", id).isReplayed()).isTrue();
        }
    }

    /** They ran unprotected. */
    @Test
    @DisplayName("P6: a handler with @Idempotent does not run for a request that no filter covered")
    void aRequestThatNoFilterCoveredDoesNotRun(CapturedOutput output) {
        try (TestServer server = TestServer.start(AnyCase.class, "--idempotence.server.paths=/payments/*")) {
            assertThat(server.post("/payments", id).status()).isEqualTo(200);
            for (String path : List.of("/PAYMENTS", "/v1/payments")) {
                assertThat(server.post(path, id).status()).isEqualTo(500);
                assertThat(server.post(path + "/search", id).status()).isLessThan(500);
                assertThat(output)
                        .contains("Payments#pay() was not run: it has @Idempotent, and no idempotence filter covered"
                                + " POST " + path);
            }
        }
    }

    /** Such as {@code @AutoConfigureMockMvc(addFilters = false)} makes. */
    @Test
    void aTestWithoutFiltersRunsHandlersAlsoBesideARealServer() throws Exception {
        try (TestServer server = TestServer.start(OwnFilter.class)) {
            assertThat(MockMvcBuilders.webAppContextSetup((WebApplicationContext) server.context())
                            .build()
                            .perform(MockMvcRequestBuilders.post("/payments"))
                            .andReturn()
                            .getResponse()
                            .getStatus())
                    .isEqualTo(200);
        }
    }

    @Test
    void aTestWithoutFiltersRunsHandlers() {
        MisusedAnnotationsTest.application()
                .withUserConfiguration(OwnFilter.class)
                .run(context -> {
                    MockMvc mvc = MockMvcBuilders.webAppContextSetup(context).build();
                    assertThat(mvc.perform(MockMvcRequestBuilders.post("/payments"))
                                    .andReturn()
                                    .getResponse()
                                    .getStatus())
                            .isEqualTo(200);
                });
    }
}
