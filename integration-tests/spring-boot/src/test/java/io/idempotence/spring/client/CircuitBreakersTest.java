package io.idempotence.spring.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.github.resilience4j.circuitbreaker.CircuitBreaker;
import io.github.resilience4j.circuitbreaker.CircuitBreakerRegistry;
import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.OutcomeUnknown;
import io.idempotence.client.feign.FeignOutcomeUnknownException;
import io.idempotence.client.feign.IdempotentFeign;
import io.idempotence.internal.Causes;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.cloud.circuitbreaker.resilience4j.Resilience4JCircuitBreakerFactory;
import org.springframework.cloud.client.circuitbreaker.NoFallbackAvailableException;
import org.springframework.cloud.openfeign.EnableFeignClients;
import org.springframework.cloud.openfeign.FallbackFactory;
import org.springframework.cloud.openfeign.FeignBuilderCustomizer;
import org.springframework.cloud.openfeign.FeignClient;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;

/** Feign clients with {@code spring.cloud.openfeign.circuitbreaker.enabled}, whose time limiter runs a call in another thread. */
@ExtendWith(OutputCaptureExtension.class)
class CircuitBreakersTest {
    private static OrdersProvider provider;
    private static LossyProxy proxy;
    private static ConfigurableApplicationContext application;

    /** Its limiter is raised above the deadline. */
    @FeignClient(name = "patient", url = "${proxy}", fallbackFactory = Fallbacks.class)
    interface Patient {
        @PostMapping("/orders")
        String create(@RequestBody String order);
    }

    /** Its limiter has the default of a second. */
    @FeignClient(name = "hasty", url = "${proxy}")
    interface Hasty {
        @PostMapping("/orders")
        String create(@RequestBody String order);
    }

    /** Its retry is one of {@code resilience4j.retry.instances}. */
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

    /** A client whose limiter has the default of a second, and what its fallback answers. */
    interface WithFallback {
        @PostMapping("/orders")
        String create(@RequestBody String order);

        /** Spring Cloud puts a circuit breaker around this, too. Its limit begins first. */
        default String createAll(String... orders) {
            return Stream.of(orders).map(this::create).collect(Collectors.joining(", "));
        }

        default String createOrReport(String order) {
            try {
                return create(order);
            } catch (RuntimeException e) {
                throw new UnsupportedOperationException("reported");
            }
        }
    }

    /** Only the limiters of its default methods have the default of a second. */
    @FeignClient(name = "no-fallback", url = "${proxy}")
    interface NoFallback extends WithFallback {}

    @FeignClient(name = "by-factory", url = "${proxy}", fallbackFactory = FallbackByFactory.class)
    interface ByFactory extends WithFallback {}

    @FeignClient(name = "by-class", url = "${proxy}", fallback = FallbackByClass.class)
    interface ByClass extends WithFallback {}

    static class FallbackByFactory implements FallbackFactory<ByFactory> {
        @Override
        public ByFactory create(Throwable cause) {
            return order ->
                    cause instanceof OutcomeUnknown unknown ? "unknown, ID \"" + unknown.id() + "\"" : "not executed";
        }
    }

    static class FallbackByClass implements ByClass {
        @Override
        public String create(String order) {
            return FeignFallback.unknownOutcome()
                    .map(unknown -> "unknown, ID \"" + unknown.id() + "\"")
                    .orElse("not executed");
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @EnableFeignClients(
            clients = {
                Patient.class,
                Hasty.class,
                OfResilience4j.class,
                ByFactory.class,
                ByClass.class,
                NoFallback.class
            })
    @Import({FallbackByFactory.class, FallbackByClass.class})
    static class Application {
        @Bean
        Fallbacks fallbacks() {
            return new Fallbacks();
        }
    }

    @BeforeAll
    static void start(CapturedOutput output) {
        provider = OrdersProvider.shared();
        proxy = LossyProxy.before(provider.port());
        application = new SpringApplicationBuilder(Application.class)
                .web(WebApplicationType.NONE)
                .properties(
                        "proxy=" + proxy.url(),
                        "spring.main.banner-mode=off",
                        "spring.cloud.openfeign.circuitbreaker.enabled=true",
                        "resilience4j.timelimiter.instances.PatientcreateString.timeout-duration=30s",
                        "resilience4j.timelimiter.instances.NoFallbackcreateString.timeout-duration=30s",
                        "resilience4j.retry.instances.of-resilience4j.max-attempts=2",
                        "resilience4j.retry.instances.of-resilience4j.wait-duration=1ms",
                        "idempotence.client.retry.wait=1ms")
                .run();
        application.getBean(Hasty.class);
        application.getBean(Patient.class);
        application.getBean(NoFallback.class);
        assertThat(output)
                .contains(
                        "circuit breaker HastycreateString gives up calls of Feign client hasty after PT1S, but they may"
                                + " take PT10S (idempotence.client.deadline)")
                .contains("resilience4j.timelimiter.instances.HastycreateString.timeout-duration")
                // one of its default methods
                .contains("gives up calls of Feign client no-fallback after PT1S")
                .doesNotContain("Feign client patient");
    }

    @AfterAll
    static void stop() throws Exception {
        application.close();
        proxy.close();
    }

    @BeforeEach
    void forget() {
        proxy.forget();
        provider.executions().set(0);
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
        String answer = application.getBean(Patient.class).create("tea");
        assertThat(application.getBean(Fallbacks.class).causes)
                .singleElement()
                .isInstanceOf(FeignOutcomeUnknownException.class);
        assertThat("\"" + answer.substring("unknown, ID ".length()) + "\"")
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

    private String unknown() {
        return "unknown, ID " + proxy.headers("Idempotency-Key").get(0);
    }

    @ParameterizedTest
    @ValueSource(classes = {ByFactory.class, ByClass.class})
    void fallbackIsToldThatTheOutcomeIsUnknownAfterTheLastAttempt(Class<? extends WithFallback> client) {
        proxy.loseResponses(9);
        assertThat(application.getBean(client).create("tea")).isEqualTo(unknown());
    }

    /** A plain TimeoutException looked like a call that had not been executed. */
    @ParameterizedTest
    @ValueSource(classes = {ByFactory.class, ByClass.class})
    void fallbackIsToldThatTheOutcomeIsUnknownWhenTheLimiterEndsTheCall(Class<? extends WithFallback> client) {
        CountDownLatch held = new CountDownLatch(1);
        provider.holdOrdersUntil(held);
        try {
            assertThat(application.getBean(client).create("tea")).isEqualTo(unknown());
        } finally {
            held.countDown();
        }
    }

    @ParameterizedTest
    @ValueSource(classes = {ByFactory.class, ByClass.class})
    void refusedCallIsNotUnknownToAFallback(Class<? extends WithFallback> client) throws Exception {
        WithFallback orders = application.getBean(client);
        IdempotenceId id = new IdempotenceId(UUID.randomUUID().toString());
        assertThat(IdempotenceScope.with(id, () -> orders.create("tea"))).isEqualTo("order 1: tea");
        assertThat(IdempotenceScope.with(id, () -> orders.create("coffee"))).isEqualTo("not executed");
        assertThat(provider.executions()).hasValue(1);
    }

    @ParameterizedTest
    @ValueSource(classes = {ByFactory.class, ByClass.class})
    void callThatAnOpenBreakerStopsIsNotUnknownToAFallback(Class<? extends WithFallback> client) {
        CircuitBreaker breaker = application
                .getBean(CircuitBreakerRegistry.class)
                .circuitBreaker(client.getSimpleName() + "createString");
        breaker.transitionToForcedOpenState();
        try {
            assertThat(application.getBean(client).create("tea")).isEqualTo("not executed");
            assertThat(proxy.requests()).isEmpty();
        } finally {
            breaker.transitionToClosedState();
        }
    }

    @Test
    void nothingIsUnknownOutsideOfAFallback() {
        proxy.loseResponses(9);
        assertThat(application.getBean(ByClass.class).create("tea")).startsWith("unknown");
        assertThat(FeignFallback.unknownOutcome()).isEmpty();
    }

    /** The limiter of the default method knew nothing of the call inside it. */
    @ParameterizedTest
    @ValueSource(classes = {ByFactory.class, ByClass.class})
    void fallbackIsToldOfTheUnknownOutcomeOfACallInADefaultMethod(Class<? extends WithFallback> client) {
        CountDownLatch held = new CountDownLatch(1);
        provider.holdOrdersUntil(held);
        try {
            assertThat(application.getBean(client).createAll("tea")).isEqualTo(unknown());
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
    void ofSeveralCallsInADefaultMethodTheUnknownOneIsTold() {
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

    /** The fallback classes of such clients always saw a call that was not executed. */
    @ParameterizedTest
    @ValueSource(classes = {ByFactory.class, ByClass.class})
    void fallbackIsToldOfTheUnknownOutcomeOfAClientInWhichTheApplicationInstalled(
            Class<? extends WithFallback> client) {
        CountDownLatch held = new CountDownLatch(1);
        provider.holdOrdersUntil(held);
        try (ConfigurableApplicationContext own = new SpringApplicationBuilder(Application.class, OwnInstallation.class)
                .web(WebApplicationType.NONE)
                .properties(
                        "proxy=" + proxy.url(),
                        "spring.main.banner-mode=off",
                        "spring.cloud.openfeign.circuitbreaker.enabled=true")
                .run()) {
            assertThat(own.getBean(client).create("tea")).isEqualTo(unknown());
        } finally {
            held.countDown();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class OwnInstallation {
        @Bean
        FeignBuilderCustomizer ownInstallation() {
            return builder -> IdempotentFeign.install(
                    builder, IdempotenceClientConfig.builder().build());
        }
    }

    /** Resilience4j's limiter leaves the call of an interrupted thread in its queue. */
    @Test
    void callOfAnInterruptedThreadInTheQueueOfItsThreadIsNeverSent() throws Exception {
        queueing("30s", orders -> {
            FutureTask<String> interrupted = new FutureTask<>(() -> orders.create("coffee"));
            Thread caller = new Thread(interrupted, "interrupted caller");
            caller.start();
            await().until(() -> caller.getState() == Thread.State.TIMED_WAITING);
            caller.interrupt();
            assertThat(interrupted.get(30, TimeUnit.SECONDS)).isEqualTo("not executed");
        });
    }

    /** Its fallback said that it was not executed, and then it was. */
    @Test
    void callThatTheLimiterEndedInTheQueueOfItsThreadIsNeverSent() throws Exception {
        queueing("500ms", orders -> assertThat(orders.create("coffee")).isEqualTo("not executed"));
    }

    @Test
    void callInADefaultMethodThatTheLimiterEndedInTheQueueIsNeverSent() throws Exception {
        queueing("500ms", orders -> assertThat(orders.createAll("coffee")).isEqualTo("not executed"));
    }

    private interface QueuedCall {
        void of(ByFactory orders) throws Exception;
    }

    /** Makes a call while both threads are busy with others, and expects that it is never sent. */
    private void queueing(String limit, QueuedCall call) throws Exception {
        CountDownLatch held = new CountDownLatch(1);
        provider.holdOrdersUntil(held);
        ExecutorService two = Executors.newFixedThreadPool(2);
        try (ConfigurableApplicationContext queueing = new SpringApplicationBuilder(Application.class)
                .web(WebApplicationType.NONE)
                .properties(
                        "proxy=" + proxy.url(),
                        "spring.main.banner-mode=off",
                        "spring.cloud.openfeign.circuitbreaker.enabled=true",
                        "resilience4j.timelimiter.configs.default.cancel-running-future=false",
                        "resilience4j.timelimiter.configs.default.timeout-duration=" + limit)
                .run()) {
            queueing.getBean(Resilience4JCircuitBreakerFactory.class).configureExecutorService(two);
            ByFactory orders = queueing.getBean(ByFactory.class);
            List<FutureTask<String>> running = Stream.of("tea", "milk")
                    .map(order -> new FutureTask<>(() -> orders.create(order)))
                    .toList();
            running.forEach(task -> new Thread(task, "caller of a running call").start());
            await().until(() -> proxy.requests().size() == 2);
            call.of(orders);
            held.countDown();
            for (FutureTask<String> task : running) {
                task.get(30, TimeUnit.SECONDS);
            }
            two.shutdown();
            assertThat(two.awaitTermination(30, TimeUnit.SECONDS)).isTrue();
            assertThat(proxy.requests()).hasSize(2);
        } finally {
            held.countDown();
            two.shutdownNow();
        }
    }
}
