package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.Idempotent;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotencePolicy;
import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.spring.FailingStart;
import io.idempotence.spring.method.IdempotentOperation.Origin;
import io.idempotence.spring.method.IdempotentOperation.Setting;
import io.idempotence.spring.server.IdempotenceFilterCustomizer;
import io.idempotence.spring.server.IdempotenceFilterRegistrationBean;
import java.time.Duration;
import java.util.Set;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RequestMethod;
import org.springframework.web.bind.annotation.RestController;

/** The policy of a filter and the attributes of the handlers behind it. */
@ExtendWith(OutputCaptureExtension.class)
class FilterPoliciesTest {
    private static final IdempotencePolicy LONG =
            IdempotencePolicy.builder().lease(Duration.ofHours(2)).build();

    private final String id = UUID.randomUUID().toString();

    private static IdempotenceFilter filter(Idempotence idempotence) {
        return IdempotenceFilter.builder(idempotence).idOptional().build();
    }

    @RestController
    static class Refunds {
        @Idempotent(retention = "1h")
        @RequestMapping(path = "/refunds/{number}", method = RequestMethod.POST)
        String refund() {
            return "refunded " + UUID.randomUUID();
        }
    }

    @Import(Refunds.class)
    static class ContradictoryFilter {
        @Bean
        IdempotenceFilter own(Idempotence idempotence) {
            return IdempotenceFilter.builder(idempotence).policy(LONG).build();
        }
    }

    @Import(Refunds.class)
    static class ContradictoryOperation {
        @Bean
        IdempotenceFilterCustomizer own() {
            return filter -> filter.operation("POST /refunds/{id}", LONG);
        }
    }

    @Import(Refunds.class)
    static class ContradictoryRegistration {
        @Bean
        IdempotenceFilterRegistrationBean inFront(Idempotence idempotence) {
            IdempotenceFilterRegistrationBean inFront = new IdempotenceFilterRegistrationBean(
                    IdempotenceFilter.builder(idempotence).policy(LONG).build(), "/refunds/*");
            inFront.setOrder(0);
            return inFront;
        }

        @Bean
        IdempotenceFilterRegistrationBean behind(Idempotence idempotence) {
            return new IdempotenceFilterRegistrationBean(filter(idempotence));
        }
    }

    /** Both have the lowest precedence. The first one decides, because it is not to match after the filters of the application. */
    @Import(Refunds.class)
    static class ContradictoryPlainRegistration {
        @Bean
        IdempotenceFilterRegistrationBean everything(Idempotence idempotence) {
            return new IdempotenceFilterRegistrationBean(filter(idempotence));
        }

        @Bean
        FilterRegistrationBean<IdempotenceFilter> ofRefunds(Idempotence idempotence) {
            FilterRegistrationBean<IdempotenceFilter> plain = new FilterRegistrationBean<>(
                    IdempotenceFilter.builder(idempotence).policy(LONG).build());
            plain.addUrlPatterns("/refunds/*");
            return plain;
        }
    }

    /** Its order is first, but a container runs the filters of patterns before those of servlets. */
    @Import(Refunds.class)
    static class ContradictoryPattern {
        @Bean
        FilterRegistrationBean<IdempotenceFilter> ofServlet(Idempotence idempotence) {
            FilterRegistrationBean<IdempotenceFilter> ofServlet = new FilterRegistrationBean<>(filter(idempotence));
            ofServlet.setServletNames(Set.of("dispatcherServlet"));
            ofServlet.setOrder(0);
            return ofServlet;
        }

        @Bean
        FilterRegistrationBean<IdempotenceFilter> ofRefunds(Idempotence idempotence) {
            FilterRegistrationBean<IdempotenceFilter> ofRefunds = new FilterRegistrationBean<>(
                    IdempotenceFilter.builder(idempotence).policy(LONG).build());
            ofRefunds.addUrlPatterns("/refunds/*");
            ofRefunds.setOrder(1);
            return ofRefunds;
        }
    }

    @RestController
    static class AnyMethod {
        @Idempotent(retention = "1h")
        @RequestMapping("/any")
        String run() {
            return "ran";
        }
    }

    @Import(AnyMethod.class)
    static class ContradictoryPatch {
        @Bean
        IdempotenceFilterCustomizer own() {
            return filter -> filter.operation("PATCH /any", LONG);
        }
    }

    @Test
    void aHandlerOfAnyMethodFitsThePolicyOfEachUnsafeOne(CapturedOutput output) {
        assertThat(FailingStart.report(
                        output, new Class<?>[] {ContradictoryPatch.class, MisusedAnnotationsTest.Application.class}))
                .contains(
                        "AnyMethod.run: it does not fit the policy that the filter of 'idempotenceFilterRegistration' has for"
                                + " PATCH /any");
    }

    /** It failed with a 500 at each request. */
    @ParameterizedTest
    @CsvSource({
        "ContradictoryFilter, idempotenceFilterRegistration",
        "ContradictoryOperation, idempotenceFilterRegistration",
        "ContradictoryRegistration, inFront",
        "ContradictoryPlainRegistration, ofRefunds",
        "ContradictoryPattern, ofRefunds"
    })
    void aHandlerThatContradictsThePolicyOfItsFilterFailsTheStart(
            String application, String registration, CapturedOutput output) throws Exception {
        Class<?> type = Class.forName(FilterPoliciesTest.class.getName() + "$" + application);
        assertThat(FailingStart.report(output, new Class<?>[] {type, MisusedAnnotationsTest.Application.class}))
                .contains("Refunds.refund: it does not fit the policy that the filter of '" + registration
                        + "' has for POST /refunds/{number}: retention (1h) must not be shorter than lease (2h)")
                .contains("Change retention of @Idempotent, or that policy.");
    }

    @Import(Refunds.class)
    static class OtherOperations {
        @Bean
        IdempotenceFilterRegistrationBean inFront(Idempotence idempotence) {
            IdempotenceFilterRegistrationBean inFront = new IdempotenceFilterRegistrationBean(
                    IdempotenceFilter.builder(idempotence)
                            .policy(LONG)
                            .operation("PUT /refunds/{id}", LONG)
                            .operation("/refunds/*", IdempotencePolicy.defaults())
                            .build(),
                    "/refunds/*");
            inFront.setOrder(0);
            return inFront;
        }

        @Bean
        IdempotenceFilterRegistrationBean behind(Idempotence idempotence) {
            return new IdempotenceFilterRegistrationBean(
                    IdempotenceFilter.builder(idempotence).policy(LONG).build());
        }
    }

    @Test
    void policiesThatNeverApplyToAHandlerMayContradictIt() {
        try (TestServer server = TestServer.start(OtherOperations.class)) {
            assertThat(server.post("/refunds/7", id).body()).startsWith("refunded");
        }
    }

    @RestController
    static class Slow {
        @Idempotent(lease = "20h")
        @PostMapping("/slow")
        String run() {
            return "ran " + UUID.randomUUID();
        }
    }

    @Import(Slow.class)
    static class FittingFilter {
        @Bean
        IdempotenceFilter own(Idempotence idempotence) {
            return IdempotenceFilter.builder(idempotence)
                    .policy(IdempotencePolicy.builder()
                            .retention(Duration.ofDays(7))
                            .build())
                    .build();
        }
    }

    /** It failed the start, because the retention of operations behind other filters is shorter. */
    @Test
    void aHandlerHasToFitThePolicyOfItsOwnFilterOnly() {
        try (TestServer server = TestServer.start(FittingFilter.class, "--idempotence.server.policy.retention=10h")) {
            assertThat(server.post("/slow", id).body()).startsWith("ran");
            assertThat(server.bean(IdempotentOperations.class).all())
                    .singleElement()
                    .satisfies(operation -> assertThat(operation.settings().get("retention"))
                            .isEqualTo(new Setting("7d", Origin.BEAN)));
        }
    }

    @RestController
    static class Transfers {
        @Idempotent
        @PostMapping({"/transfers", "/moves"})
        String transfer() {
            return "transferred";
        }
    }

    @Import(Transfers.class)
    static class DifferentFilters {
        @Bean
        IdempotenceFilterRegistrationBean ofTransfers(Idempotence idempotence) {
            return new IdempotenceFilterRegistrationBean(
                    IdempotenceFilter.builder(idempotence)
                            .policy(LONG)
                            .maxWait(Duration.ofSeconds(2))
                            .build(),
                    "/transfers/*");
        }

        @Bean
        IdempotenceFilterRegistrationBean ofMoves(Idempotence idempotence) {
            return new IdempotenceFilterRegistrationBean(
                    IdempotenceFilter.builder(idempotence)
                            .maxWait(Duration.ofSeconds(2))
                            .build(),
                    "/moves/*");
        }
    }

    /** They were listed with the policy of the first filter, and with the wait of the properties. */
    @Test
    void operationsAreListedWithWhatEachOfTheirFiltersHas() {
        MisusedAnnotationsTest.application()
                .withUserConfiguration(DifferentFilters.class)
                .run(context -> assertThat(
                                context.getBean(IdempotentOperations.class).all())
                        .singleElement()
                        .satisfies(operation -> assertThat(operation.settings())
                                .containsEntry(
                                        "lease",
                                        new Setting("30s for POST /moves; 2h for POST /transfers", Origin.BEAN))
                                .containsEntry("maxWait", new Setting("2s", Origin.BEAN))
                                .containsEntry("retention", new Setting("1d", Origin.DEFAULT))));
    }
}
