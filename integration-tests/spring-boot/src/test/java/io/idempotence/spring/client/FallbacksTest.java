package io.idempotence.spring.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.github.resilience4j.circuitbreaker.CircuitBreaker;
import io.github.resilience4j.circuitbreaker.CircuitBreakerRegistry;
import io.idempotence.IdempotenceId;
import io.idempotence.InboundRequest;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.OutcomeUnknown;
import io.idempotence.client.feign.FeignOutcomeUnknownException;
import io.idempotence.client.feign.IdempotentFeign;
import java.time.Duration;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.beans.factory.support.BeanDefinitionRegistry;
import org.springframework.beans.factory.support.BeanDefinitionRegistryPostProcessor;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.cloud.circuitbreaker.resilience4j.Resilience4JCircuitBreakerFactory;
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

/** The fallbacks of Feign clients, which can find out whether the call was executed, or that its outcome is unknown. */
class FallbacksTest extends OrdersConsumer {
    /** A client with a time limiter that ends before the deadline, and with a fallback. */
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

    @FeignClient(name = "by-factory", url = "${proxy}", fallbackFactory = FallbackByFactory.class)
    interface ByFactory extends WithFallback {}

    @FeignClient(name = "patient", url = "${proxy}", fallbackFactory = FallbackByFactory.class)
    interface Patient extends WithFallback {}

    /** Its limiter does not cancel a call that it ends. */
    @FeignClient(name = "hasty", url = "${proxy}", fallbackFactory = FallbackByFactory.class)
    interface Hasty extends WithFallback {}

    @FeignClient(
            name = "installed-by-factory",
            url = "${proxy}",
            fallbackFactory = FallbackByFactory.class,
            configuration = OwnInstallation.class)
    interface InstalledByFactory extends WithFallback {}

    @FeignClient(
            name = "installed-by-class",
            url = "${proxy}",
            fallback = FallbackByClass.class,
            configuration = OwnInstallation.class)
    interface InstalledByClass extends WithFallback {}

    @FeignClient(name = "by-class", url = "${proxy}", fallback = FallbackByClass.class)
    interface ByClass extends WithFallback {}

    static class FallbackByFactory implements FallbackFactory<WithFallback> {
        @Override
        public WithFallback create(Throwable cause) {
            return order ->
                    cause instanceof OutcomeUnknown unknown ? "unknown, ID \"" + unknown.id() + "\"" : "not executed";
        }
    }

    @FeignClient(name = "passing-on", url = "${proxy}", fallbackFactory = FallbackPassingOn.class)
    interface PassingOn extends WithFallback {}

    static class FallbackPassingOn implements FallbackFactory<PassingOn> {
        @Override
        public PassingOn create(Throwable cause) {
            return order -> {
                if (cause instanceof FeignOutcomeUnknownException unknown) {
                    throw unknown;
                }
                return "not executed";
            };
        }
    }

    static class FallbackByClass implements ByClass, InstalledByClass {
        @Override
        public String create(String order) {
            return FeignFallback.unknownOutcome()
                    .map(unknown -> "unknown, ID \"" + unknown.id() + "\"")
                    .orElse("not executed");
        }
    }

    /** The configuration of clients in which the application installed. */
    static class OwnInstallation {
        @Bean
        FeignBuilderCustomizer ownInstallation() {
            return builder -> IdempotentFeign.install(
                    builder,
                    IdempotenceClientConfig.builder()
                            .deadline(Duration.ofMinutes(2))
                            .build());
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @EnableFeignClients(
            clients = {
                ByFactory.class,
                ByClass.class,
                PassingOn.class,
                Patient.class,
                Hasty.class,
                InstalledByFactory.class,
                InstalledByClass.class
            })
    @Import({FallbackByFactory.class, FallbackByClass.class, FallbackPassingOn.class})
    static class Application {}

    @BeforeAll
    static void start() {
        application = warm(Application.class);
        for (Class<? extends WithFallback> client : List.of(InstalledByFactory.class, InstalledByClass.class)) {
            await().until(() -> application.getBean(client).create("tea").startsWith("order"));
        }
    }

    /** An application whose clients have made their first calls, which load classes and may take longer than their limit. */
    private static ConfigurableApplicationContext warm(Class<?> configuration) {
        ConfigurableApplicationContext started = started(
                configuration,
                "resilience4j.timelimiter.configs.default.timeout-duration=2s",
                "resilience4j.timelimiter.instances.PatientcreateString.timeout-duration=30s",
                "resilience4j.timelimiter.instances.HastycreateString.timeout-duration=500ms",
                "resilience4j.timelimiter.instances.HastycreateString.cancel-running-future=false",
                "resilience4j.timelimiter.instances.HastycreateAllString.timeout-duration=500ms",
                "resilience4j.timelimiter.instances.HastycreateAllString.cancel-running-future=false");
        for (Class<? extends WithFallback> client : List.of(ByFactory.class, ByClass.class)) {
            await().until(() -> started.getBean(client).create("tea").startsWith("order"));
            await().until(() -> started.getBean(client).createAll("tea").startsWith("order"));
        }
        proxy.forget();
        return started;
    }

    private static ConfigurableApplicationContext started(Class<?> configuration, String... properties) {
        return runWithCircuitBreakers(
                configuration,
                Stream.concat(Stream.of("spring.cloud.openfeign.circuitbreaker.enabled=true"), Stream.of(properties))
                        .toArray(String[]::new));
    }

    private static void whileOrdersAreHeld(Runnable calls) {
        CountDownLatch held = new CountDownLatch(1);
        provider.holdOrdersUntil(held);
        try {
            calls.run();
        } finally {
            held.countDown();
        }
    }

    private String unknown() {
        await("the request arrives").until(() -> !proxy.requests().isEmpty());
        return "unknown, ID " + proxy.headers("Idempotency-Key").get(0);
    }

    @ParameterizedTest
    @ValueSource(classes = {ByFactory.class, ByClass.class})
    void fallbackIsToldThatTheOutcomeIsUnknownAfterTheLastAttempt(Class<? extends WithFallback> client) {
        proxy.loseResponses(9);
        assertThat(application.getBean(client).create("tea")).isEqualTo(unknown());
    }

    /** As a handler with an ID needs it: it ends with the exception, and its retry asks again. */
    @Test
    void fallbackPassesTheUnknownOutcomeOnWhateverEndedTheCall() {
        PassingOn client = application.getBean(PassingOn.class);
        proxy.loseResponses(9);
        assertThatThrownBy(() -> client.create("tea")).isInstanceOf(FeignOutcomeUnknownException.class);
        proxy.loseResponses(0);

        whileOrdersAreHeld(
                () -> assertThatThrownBy(() -> client.create("tea")).isInstanceOf(FeignOutcomeUnknownException.class));
    }

    /** A plain TimeoutException looked like a call that had not been executed. */
    @ParameterizedTest
    @ValueSource(classes = {ByFactory.class, ByClass.class})
    void fallbackIsToldThatTheOutcomeIsUnknownWhenTheLimiterEndsTheCall(Class<? extends WithFallback> client) {
        whileOrdersAreHeld(
                () -> assertThat(application.getBean(client).create("tea")).isEqualTo(unknown()));
    }

    @ParameterizedTest
    @ValueSource(classes = {ByFactory.class, ByClass.class})
    void refusedCallIsNotUnknownToAFallback(Class<? extends WithFallback> client) throws Exception {
        WithFallback orders = application.getBean(client);
        IdempotenceId id = new IdempotenceId(UUID.randomUUID().toString());
        // On a busy machine the limiter may end a call.
        await().until(() -> IdempotenceScope.with(id, () -> orders.create("tea")), "order 1: tea"::equals);
        await().until(() -> IdempotenceScope.with(id, () -> orders.create("coffee")), "not executed"::equals);
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

    /** The limiter of the default method did not see the call inside it. */
    @ParameterizedTest
    @ValueSource(classes = {ByFactory.class, ByClass.class})
    void fallbackSeesTheUnknownOutcomeOfACallInADefaultMethod(Class<? extends WithFallback> client) {
        whileOrdersAreHeld(
                () -> assertThat(application.getBean(client).createAll("tea")).isEqualTo(unknown()));
    }

    /** The thread of a circuit breaker serves other callers later. */
    @Test
    void inboundRequestOfACallInADefaultMethodEndsWithIt() throws Exception {
        ExecutorService one = Executors.newSingleThreadExecutor();
        try {
            useThreadsOf(one);
            Runnable leave = InboundRequest.of("request").enter();
            try {
                application.getBean(ByFactory.class).createAll();
            } finally {
                leave.run();
            }
            one.submit(() -> assertThat(InboundRequest.current()).isEmpty()).get(60, TimeUnit.SECONDS);
        } finally {
            useDefaultThreads();
            one.shutdown();
        }
    }

    /** Those of Spring Cloud. */
    private static void useDefaultThreads() {
        useThreadsOf(Executors.newCachedThreadPool());
    }

    private static void useThreadsOf(ExecutorService executor) {
        application.getBean(Resilience4JCircuitBreakerFactory.class).configureExecutorService(executor);
    }

    private static final class WithoutComparison implements BeanDefinitionRegistryPostProcessor {
        @Override
        public void postProcessBeanDefinitionRegistry(BeanDefinitionRegistry registry) {
            registry.removeBeanDefinition("idempotenceTimeLimits");
        }
    }

    /** An application in which nothing compares deadlines with time limits. */
    @Configuration(proxyBeanMethods = false)
    @Import(Application.class)
    static class NoTimeLimits {
        @Bean
        static BeanDefinitionRegistryPostProcessor withoutComparison() {
            return new WithoutComparison();
        }
    }

    @Test
    @Tag("all") // a start for a bean that is rarely missing
    void fallbackSeesTheUnknownOutcomeWhereDeadlinesAreNotComparedWithLimits() {
        try (ConfigurableApplicationContext own = warm(NoTimeLimits.class)) {
            whileOrdersAreHeld(() -> {
                assertThat(own.getBeanProvider(TimeLimits.class).getIfAvailable())
                        .isNull();
                assertThat(own.getBean(ByClass.class).create("tea")).isEqualTo(unknown());
                proxy.forget();
                assertThat(own.getBean(ByFactory.class).createAll("tea")).isEqualTo(unknown());
            });
        }
    }

    @Test
    @Tag("all") // the same without a thread pool is in every build
    void fallbackSeesTheUnknownOutcomeWithoutATimeLimiter() {
        fallbacksSeeTheUnknownOutcomeWith("disable-time-limiter");
    }

    /** The circuit breaker runs the call in the thread of the caller, and has no time limiter either. */
    @Test
    void fallbackSeesTheUnknownOutcomeWithoutAThreadPool() {
        fallbacksSeeTheUnknownOutcomeWith("disable-thread-pool");
    }

    private void fallbacksSeeTheUnknownOutcomeWith(String property) {
        try (ConfigurableApplicationContext own =
                started(Application.class, "spring.cloud.circuitbreaker.resilience4j." + property + "=true")) {
            for (Class<? extends WithFallback> client : List.of(ByFactory.class, ByClass.class)) {
                proxy.forget();
                proxy.loseResponses(9);
                assertThat(own.getBean(client).create("tea")).isEqualTo(unknown());
                proxy.forget();
                proxy.loseResponses(9);
                assertThat(own.getBean(client).createAll("tea")).isEqualTo(unknown());
            }
        }
    }

    /** The fallback classes of such clients always saw a call that was not executed. */
    @ParameterizedTest
    @ValueSource(classes = {InstalledByFactory.class, InstalledByClass.class})
    void fallbackSeesTheUnknownOutcomeOfAClientInWhichTheApplicationInstalled(Class<? extends WithFallback> client) {
        whileOrdersAreHeld(
                () -> assertThat(application.getBean(client).create("tea")).isEqualTo(unknown()));
    }

    @Configuration(proxyBeanMethods = false)
    @Import({Application.class, OwnInstallation.class})
    static class InstalledEverywhere {}

    @Test
    @Tag("all") // a start for a customizer of all clients; the one of single clients is in every build
    void fallbackSeesTheUnknownOutcomeOfAllClientsIfTheApplicationInstalledInAll() {
        try (ConfigurableApplicationContext own = warm(InstalledEverywhere.class)) {
            whileOrdersAreHeld(() -> {
                for (Class<? extends WithFallback> client : List.of(ByFactory.class, ByClass.class)) {
                    proxy.forget();
                    assertThat(own.getBean(client).create("tea")).isEqualTo(unknown());
                }
            });
        }
    }

    /** Resilience4j's limiter leaves the call of an interrupted thread in its queue. */
    @Test
    void callOfAnInterruptedThreadInTheQueueOfItsThreadIsNeverSent() throws Exception {
        queueing(Patient.class, orders -> {
            FutureTask<String> interrupted = new FutureTask<>(() -> orders.create("coffee"));
            Thread caller = new Thread(interrupted, "interrupted caller");
            caller.start();
            await().until(() -> caller.getState() == Thread.State.TIMED_WAITING);
            caller.interrupt();
            assertThat(interrupted.get(60, TimeUnit.SECONDS)).isEqualTo("not executed");
        });
    }

    /** Its fallback said that it was not executed, and then it was. */
    @Test
    void callThatTheLimiterEndedInTheQueueOfItsThreadIsNeverSent() throws Exception {
        queueing(Hasty.class, orders -> {
            assertThat(orders.create("coffee")).isEqualTo("not executed");
            assertThat(orders.createAll("coffee")).as("in a default method").isEqualTo("not executed");
        });
    }

    private interface QueuedCall {
        void of(WithFallback orders) throws Exception;
    }

    /** Makes a call while both threads are busy, and expects that it is never sent. */
    private void queueing(Class<? extends WithFallback> client, QueuedCall call) throws Exception {
        CountDownLatch held = new CountDownLatch(1);
        ExecutorService two = Executors.newFixedThreadPool(2);
        try {
            useThreadsOf(two);
            List<Future<Boolean>> busy = Stream.generate(() -> two.submit(() -> held.await(60, TimeUnit.SECONDS)))
                    .limit(2)
                    .toList();
            call.of(application.getBean(client));
            held.countDown();
            for (Future<Boolean> task : busy) {
                assertThat(task.get(60, TimeUnit.SECONDS)).as("busy meanwhile").isTrue();
            }
            two.shutdown();
            assertThat(two.awaitTermination(30, TimeUnit.SECONDS)).isTrue();
            assertThat(proxy.requests()).isEmpty();
        } finally {
            useDefaultThreads();
            held.countDown();
            two.shutdownNow();
        }
    }
}
