package io.idempotence.spring.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.IdempotenceId;
import io.idempotence.InboundRequest;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.OutcomeUnknown;
import io.idempotence.client.feign.FeignOutcomeUnknownException;
import io.idempotence.internal.Causes;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.cloud.client.circuitbreaker.NoFallbackAvailableException;
import org.springframework.cloud.openfeign.EnableFeignClients;
import org.springframework.cloud.openfeign.FallbackFactory;
import org.springframework.cloud.openfeign.FeignClient;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;

/** Feign clients with {@code spring.cloud.openfeign.circuitbreaker.enabled}, whose time limiter runs a call in another thread. */
@ExtendWith(OutputCaptureExtension.class)
class CircuitBreakersTest extends OrdersConsumer {
    /** A client whose time limiter is raised above the deadline. */
    @FeignClient(name = "patient", url = "${proxy}", fallbackFactory = Fallbacks.class)
    interface Patient {
        @PostMapping("/orders")
        String create(@RequestBody String order);
    }

    /** A client whose time limiter ends long before the deadline. */
    @FeignClient(name = "hasty", url = "${proxy}")
    interface Hasty {
        @PostMapping("/orders")
        String create(@RequestBody String order);
    }

    /** A client that is never called. Its time limiter has the default of a second. */
    @FeignClient(name = "as-by-default", url = "${proxy}")
    interface AsByDefault {
        @PostMapping("/orders")
        String create(@RequestBody String order);
    }

    /** A client whose retry is one of {@code resilience4j.retry.instances}. */
    @FeignClient(name = "of-resilience4j", url = "${proxy}")
    interface OfResilience4j {
        @PostMapping("/orders")
        String create(@RequestBody String order);
    }

    static class Fallbacks implements FallbackFactory<Patient> {
        final List<Throwable> causes = new CopyOnWriteArrayList<>();

        @Override
        public Patient create(Throwable cause) {
            causes.add(cause);
            return order -> cause instanceof OutcomeUnknown unknown ? "unknown, ID " + unknown.id() : "failed";
        }
    }

    /** A client without a fallback. Of its time limiters, only that of {@code createAll} ends before the deadline. */
    @FeignClient(name = "no-fallback", url = "${proxy}")
    interface NoFallback extends FallbacksTest.WithFallback {
        /** Its limiter is raised. */
        default void createBoth(String one, String other) {
            create(one);
            create(other);
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @EnableFeignClients(
            clients = {Patient.class, Hasty.class, AsByDefault.class, OfResilience4j.class, NoFallback.class})
    static class Application {
        @Bean
        Fallbacks fallbacks() {
            return new Fallbacks();
        }
    }

    @BeforeAll
    static void start(CapturedOutput output) {
        application = runWithCircuitBreakers(
                Application.class,
                "spring.cloud.openfeign.circuitbreaker.enabled=true",
                "resilience4j.timelimiter.instances.HastycreateString.timeout-duration=3s",
                "resilience4j.timelimiter.instances.NoFallbackcreateAllString.timeout-duration=3s",
                "resilience4j.timelimiter.instances.PatientcreateString.timeout-duration=3m",
                "resilience4j.timelimiter.instances.OfResilience4jcreateString.timeout-duration=3m",
                "resilience4j.timelimiter.instances.NoFallbackcreateString.timeout-duration=3m",
                "resilience4j.timelimiter.instances.NoFallbackcreateBothStringString.timeout-duration=3m",
                "resilience4j.timelimiter.instances.NoFallbackcreateOrReportString.timeout-duration=3m",
                "resilience4j.retry.instances.of-resilience4j.max-attempts=2",
                "resilience4j.retry.instances.of-resilience4j.wait-duration=1ms");
        application.getBean(Hasty.class);
        application.getBean(AsByDefault.class);
        application.getBean(Patient.class);
        application.getBean(NoFallback.class);
        assertThat(output)
                .contains(
                        "circuit breaker HastycreateString gives up calls of Feign client hasty after 3s, but they may"
                                + " take 2m (idempotence.client.deadline)")
                .contains("resilience4j.timelimiter.instances.HastycreateString.timeout-duration")
                .contains("gives up calls of Feign client as-by-default after 1s")
                // one of its default methods
                .contains("gives up calls of Feign client no-fallback after 3s")
                .doesNotContain("Feign client patient");
        // The first call loads classes. On a busy machine that takes longer than the limit of the others.
        application.getBean(Patient.class).create("tea");
    }

    @BeforeEach
    void forgetCauses() {
        application.getBean(Fallbacks.class).causes.clear();
    }

    @Test
    void attemptsInAnotherThreadKeepTheId() {
        proxy.loseResponses(2);
        assertThat(application.getBean(Patient.class).create("tea")).isEqualTo("order 1: tea");
        assertThat(proxy.headers("Idempotency-Key")).hasSize(3).doesNotContain("-");
        assertThat(proxy.headers("Idempotency-Key").stream().distinct()).hasSize(1);
        assertThat(provider.executions()).hasValue(1);
    }

    @Test
    void retryOfResilience4jInTheYamlApplies() {
        proxy.loseResponses(9);
        assertThatThrownBy(() -> application.getBean(OfResilience4j.class).create("tea"))
                .hasCauseInstanceOf(FeignOutcomeUnknownException.class);
        assertThat(proxy.requests()).hasSize(2);
    }

    @Test
    void fallbackFactoryGetsTheUnknownOutcomeItself() {
        proxy.loseResponses(9);
        String response = application.getBean(Patient.class).create("tea");
        assertThat(application.getBean(Fallbacks.class).causes)
                .singleElement()
                .isInstanceOf(FeignOutcomeUnknownException.class);
        assertThat("\"" + response.substring("unknown, ID ".length()) + "\"")
                .isEqualTo(proxy.headers("Idempotency-Key").get(0));
    }

    /** As Spring Cloud does with every exception of a call without a fallback. */
    @Test
    void unknownOutcomeWithoutAFallbackIsTheCauseOfSpringsException() {
        proxy.loseResponses(9);
        assertThatThrownBy(() -> application.getBean(Hasty.class).create("tea"))
                .isInstanceOf(NoFallbackAvailableException.class)
                .hasCauseInstanceOf(FeignOutcomeUnknownException.class);
    }

    @Test
    void limiterThatGivesUpARunningCallLeavesItsOutcomeUnknown() {
        CountDownLatch held = new CountDownLatch(1);
        provider.holdOrdersUntil(held);
        try {
            assertThatThrownBy(() -> application.getBean(Hasty.class).create("tea"))
                    .isInstanceOf(FeignOutcomeUnknownException.class)
                    .satisfies(thrown -> assertThat(Causes.has(thrown, TimeoutException.class))
                            .isTrue());
        } finally {
            held.countDown();
        }
    }

    /** The limiter runs the method in another thread, and the ID stayed in the thread of the caller. */
    @Test
    void callInADefaultMethodHasTheIdOfItsCallersScope() throws Exception {
        IdempotenceId id = new IdempotenceId(UUID.randomUUID().toString());
        IdempotenceScope.with(id, () -> application.getBean(NoFallback.class).createAll("tea"));
        assertThat(proxy.headers("Idempotency-Key")).containsExactly("\"" + id + "\"");
    }

    /** A handler that runs again has to repeat the IDs of its calls. */
    @Test
    void callsInADefaultMethodHaveIdsDerivedFromTheInboundRequestOfTheirCaller() {
        List<String> first = idsInside("request-1");
        assertThat(first).hasSize(2).doesNotHaveDuplicates().doesNotContain("-");
        assertThat(idsInside("request-1")).isEqualTo(first);
        assertThat(idsInside("request-2")).doesNotContainAnyElementsOf(first);
        assertThat(InboundRequest.current()).isEmpty();
    }

    /** Makes two equal calls, as a handler would. */
    private static List<String> idsInside(String inbound) {
        proxy.forget();
        Runnable leave = InboundRequest.of(inbound).enter();
        try {
            application.getBean(NoFallback.class).createBoth("tea", "tea");
        } finally {
            leave.run();
        }
        return proxy.headers("Idempotency-Key");
    }

    @Test
    void defaultMethodWithoutAFallbackThrowsTheUnknownOutcomeOfItsCall() {
        CountDownLatch held = new CountDownLatch(1);
        provider.holdOrdersUntil(held);
        try {
            assertThatThrownBy(() -> application.getBean(NoFallback.class).createAll("tea"))
                    .isInstanceOf(FeignOutcomeUnknownException.class)
                    .satisfies(thrown -> assertThat(Causes.has(thrown, TimeoutException.class))
                            .isTrue());
        } finally {
            held.countDown();
        }
    }

    @Test
    void defaultMethodWithSeveralCallsReportsTheUnknownOne() {
        CountDownLatch held = new CountDownLatch(1);
        provider.holdOrdersAfterTheFirstUntil(held);
        try {
            assertThatThrownBy(() -> application.getBean(NoFallback.class).createAll("tea", "coffee"))
                    .isInstanceOfSatisfying(
                            FeignOutcomeUnknownException.class,
                            unknown -> assertThat("\"" + unknown.id() + "\"")
                                    .isEqualTo(proxy.headers("Idempotency-Key").get(1)));
            assertThat(proxy.requests()).hasSize(2);
        } finally {
            held.countDown();
        }
    }

    /** The application has seen the unknown outcome, and chose what it throws. */
    @Test
    void exceptionOfADefaultMethodItselfIsNotReplaced() {
        proxy.loseResponses(9);
        assertThatThrownBy(() -> application.getBean(NoFallback.class).createOrReport("tea"))
                .isInstanceOf(NoFallbackAvailableException.class)
                .hasCauseInstanceOf(UnsupportedOperationException.class);
    }
}
