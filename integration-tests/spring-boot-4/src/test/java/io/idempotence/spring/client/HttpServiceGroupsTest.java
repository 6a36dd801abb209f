package io.idempotence.spring.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceClientEvent;
import io.idempotence.client.IdempotenceClientListener;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.OutcomeUnknown;
import io.idempotence.internal.Causes;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.cloud.circuitbreaker.resilience4j.Resilience4JCircuitBreakerFactory;
import org.springframework.cloud.client.circuitbreaker.Customizer;
import org.springframework.cloud.client.circuitbreaker.NoFallbackAvailableException;
import org.springframework.cloud.client.circuitbreaker.httpservice.HttpServiceFallback;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.client.RestClient;
import org.springframework.web.service.annotation.PostExchange;
import org.springframework.web.service.registry.ImportHttpServices;

/** HTTP service groups, which Spring Boot 4 builds from {@code application.yml}. */
class HttpServiceGroupsTest {
    interface BillingExchange {
        @PostExchange("/orders")
        String create(@RequestBody String order);

        @PostExchange("/orders")
        String createOnce(@RequestBody String order);
    }

    interface ShippingExchange {
        @PostExchange("/orders")
        String create(@RequestBody String order);
    }

    /** A fallback that calls another provider, through a plain client. */
    public static class OtherShipping {
        static volatile Supplier<String> plain = () -> "";

        public String create(String order) {
            return plain.get();
        }
    }

    interface PickingExchange {
        @PostExchange("/orders")
        String create(@RequestBody String order);

        @PostExchange("/orders")
        String createWithoutCause(@RequestBody String order);
    }

    /** A class with two fallbacks, one of which gets the cause. */
    public static class NoPicking {
        public String create(Throwable cause, String order) {
            return cause instanceof OutcomeUnknown unknown ? unknown(unknown) : "not executed";
        }

        public String createWithoutCause(String order) {
            return FeignFallback.unknownOutcome().map(NoPicking::unknown).orElse("not executed");
        }

        private static String unknown(OutcomeUnknown outcome) {
            return "unknown, ID \"" + outcome.id() + "\"";
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @ImportHttpServices(group = "picking", types = PickingExchange.class)
    @HttpServiceFallback(value = NoPicking.class, group = "picking")
    @ImportHttpServices(group = "billing", types = BillingExchange.class)
    @ImportHttpServices(group = "shipping", types = ShippingExchange.class)
    @HttpServiceFallback(value = OtherShipping.class, group = "shipping")
    static class Application {
        final List<IdempotenceClientEvent> events = new CopyOnWriteArrayList<>();

        @Bean
        IdempotenceClientListener listener() {
            return events::add;
        }
    }

    /** Spring Cloud puts a circuit breaker around each group, whose time limiter runs a call in another thread. */
    @Test
    void clientsHaveTheNameOfTheirGroupAndMethodAndTheScopeOfTheirCaller() throws Exception {
        OrdersProvider provider = OrdersProvider.shared();
        try (LossyProxy proxy = LossyProxy.before(provider.port());
                ConfigurableApplicationContext application = new SpringApplicationBuilder(Application.class)
                        .profiles("circuit-breakers")
                        .web(WebApplicationType.NONE)
                        .run(
                                "--spring.main.banner-mode=off",
                                "--spring.http.serviceclient.billing.base-url=" + proxy.url(),
                                "--resilience4j.timelimiter.instances.billing.timeout-duration=5s",
                                "--idempotence.client.clients.[billing#createOnce].retry.max-attempts=1")) {
            BillingExchange billing = application.getBean(BillingExchange.class);
            // The first call loads classes. On a busy machine that takes longer than its limit.
            await().ignoreExceptions().until(() -> billing.create("tea").endsWith(": tea"));
            proxy.forget();

            proxy.loseResponses(1);
            assertThat(billing.create("tea")).endsWith(": tea");
            assertThat(proxy.headers("Idempotency-Key")).hasSize(2).doesNotContain("-");
            assertThat(proxy.headers("Idempotency-Key").stream().distinct()).hasSize(1);
            String sent = proxy.headers("Idempotency-Key").get(0);
            assertThat(application.getBean(Application.class).events)
                    .filteredOn(event -> sent.equals("\"" + event.id().orElseThrow() + "\""))
                    .singleElement()
                    .satisfies(event -> {
                        assertThat(event.client()).isEqualTo("billing");
                        assertThat(event.method()).isEqualTo("create");
                    });
            proxy.forget();
            IdempotenceId id = new IdempotenceId("of-a-scope");
            IdempotenceScope.with(id, () -> billing.create("tea"));
            assertThat(proxy.headers("Idempotency-Key")).containsExactly("\"of-a-scope\"");

            proxy.forget();
            proxy.loseResponses(1);
            // Spring Cloud wraps what a client throws, if there is no fallback.
            assertThatThrownBy(() -> billing.createOnce("tea"))
                    .isInstanceOf(NoFallbackAvailableException.class)
                    .hasCauseInstanceOf(RestOutcomeUnknownException.class);
            assertThat(proxy.requests()).hasSize(1);

            CountDownLatch held = new CountDownLatch(1);
            provider.holdOrdersUntil(held);
            try {
                assertThatThrownBy(() -> billing.create("tea"))
                        .isInstanceOf(RestOutcomeUnknownException.class)
                        .satisfies(thrown -> assertThat(Causes.has(thrown, TimeoutException.class))
                                .isTrue());
            } finally {
                held.countDown();
            }
        }
    }

    @Test
    void fallbackOfACircuitBreakerIsAPlainCall() throws Exception {
        try (LossyProxy proxy = LossyProxy.before(OrdersProvider.shared().port());
                ConfigurableApplicationContext application = new SpringApplicationBuilder(Application.class)
                        .profiles("circuit-breakers")
                        .web(WebApplicationType.NONE)
                        .run(
                                "--spring.main.banner-mode=off",
                                "--spring.http.serviceclient.shipping.base-url=" + proxy.url(),
                                "--resilience4j.timelimiter.instances.shipping.timeout-duration=3m",
                                "--idempotence.client.deadline=2m",
                                "--idempotence.client.retry.max-attempts=2")) {
            RestClient plain = application
                    .getBean(RestClient.Builder.class)
                    .baseUrl(proxy.url())
                    .build();
            OtherShipping.plain =
                    () -> plain.post().uri("/orders").body("tea").retrieve().body(String.class);
            proxy.loseResponses(99);
            assertThatThrownBy(() -> application.getBean(ShippingExchange.class).create("tea"))
                    .isNotNull();
            assertThat(proxy.headers("Idempotency-Key")).hasSize(3);
            assertThat(proxy.headers("Idempotency-Key").subList(0, 2)).doesNotContain("-");
            assertThat(proxy.headers("Idempotency-Key").get(2)).isEqualTo("-");
        }
    }

    /** One thread for all circuit breakers. Those of groups are made at the start, with the thread pool of that time. */
    @Configuration(proxyBeanMethods = false)
    static class OneThread {
        @Bean(destroyMethod = "shutdownNow")
        ExecutorService one() {
            return Executors.newSingleThreadExecutor();
        }

        @Bean
        Customizer<Resilience4JCircuitBreakerFactory> ofCircuitBreakers(ExecutorService one) {
            return factory -> factory.configureExecutorService(one);
        }
    }

    /** An application whose client has made its first calls, which load classes and may take longer than their limit. */
    private static ConfigurableApplicationContext picking(LossyProxy proxy, String... properties) {
        ConfigurableApplicationContext application = new SpringApplicationBuilder(Application.class, OneThread.class)
                .profiles("circuit-breakers")
                .web(WebApplicationType.NONE)
                .properties(properties)
                .run(
                        "--spring.main.banner-mode=off",
                        "--spring.http.serviceclient.picking.base-url=" + proxy.url(),
                        "--resilience4j.timelimiter.configs.default.timeout-duration=2s");
        PickingExchange picking = application.getBean(PickingExchange.class);
        await().until(() -> picking.create("tea").startsWith("order"));
        await().until(() -> picking.createWithoutCause("tea").startsWith("order"));
        proxy.forget();
        return application;
    }

    /** The fallback always got a plain TimeoutException, as after a call that had not been executed. */
    @Test
    void fallbackSeesTheUnknownOutcomeWhenTheLimiterEndsTheCall() throws Exception {
        CountDownLatch held = new CountDownLatch(1);
        try (LossyProxy proxy = LossyProxy.before(OrdersProvider.shared().port());
                ConfigurableApplicationContext application = picking(proxy)) {
            OrdersProvider.shared().holdOrdersUntil(held);
            PickingExchange picking = application.getBean(PickingExchange.class);
            assertThat(picking.create("tea")).isEqualTo(unknown(proxy));
            proxy.forget();
            assertThat(picking.createWithoutCause("tea")).isEqualTo(unknown(proxy));
        } finally {
            held.countDown();
        }
    }

    private static String unknown(LossyProxy proxy) {
        await("the request arrives").until(() -> !proxy.requests().isEmpty());
        return "unknown, ID " + proxy.headers("Idempotency-Key").get(0);
    }

    @Test
    void callThatTheLimiterEndedInTheQueueOfItsThreadIsNeverSent() throws Exception {
        CountDownLatch held = new CountDownLatch(1);
        try (LossyProxy proxy = LossyProxy.before(OrdersProvider.shared().port());
                ConfigurableApplicationContext application =
                        picking(proxy, "resilience4j.timelimiter.configs.default.cancel-running-future=false")) {
            OrdersProvider.shared().holdOrdersUntil(held);
            ExecutorService one = application.getBean(ExecutorService.class);
            PickingExchange picking = application.getBean(PickingExchange.class);
            FutureTask<String> first = new FutureTask<>(() -> picking.create("tea"));
            new Thread(first, "first caller").start();
            await().until(() -> proxy.requests().size() == 1);
            assertThat(picking.create("coffee")).isEqualTo("not executed");
            assertThat(picking.createWithoutCause("coffee")).isEqualTo("not executed");
            held.countDown();
            first.get(60, TimeUnit.SECONDS);
            one.shutdown();
            assertThat(one.awaitTermination(30, TimeUnit.SECONDS)).isTrue();
            assertThat(proxy.requests()).hasSize(1);
        } finally {
            held.countDown();
        }
    }
}
