package io.idempotence.spring.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.OutcomeUnknown;
import io.idempotence.internal.Causes;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.cloud.circuitbreaker.resilience4j.Resilience4JCircuitBreakerFactory;
import org.springframework.cloud.client.circuitbreaker.Customizer;
import org.springframework.cloud.client.circuitbreaker.NoFallbackAvailableException;
import org.springframework.cloud.client.circuitbreaker.httpservice.HttpServiceFallback;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.client.RestClient;
import org.springframework.web.service.annotation.PostExchange;
import org.springframework.web.service.registry.ImportHttpServices;

/** HTTP service groups, which Spring Boot 4 builds from {@code application.yml}. */
class HttpServiceGroupsTest extends OrdersConsumer {
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

    interface Picking {
        @PostExchange("/orders")
        String create(@RequestBody String order);

        @PostExchange("/orders")
        String createWithoutCause(@RequestBody String order);
    }

    interface PickingExchange extends Picking {}

    /** The limiter of its group does not cancel a call that it ends. */
    interface PackingExchange extends Picking {}

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
    @Import(OrdersConsumer.Events.class)
    @ImportHttpServices(group = "picking", types = PickingExchange.class)
    @HttpServiceFallback(value = NoPicking.class, group = "picking")
    @ImportHttpServices(group = "packing", types = PackingExchange.class)
    @HttpServiceFallback(value = NoPicking.class, group = "packing")
    @ImportHttpServices(group = "billing", types = BillingExchange.class)
    @ImportHttpServices(group = "shipping", types = ShippingExchange.class)
    @HttpServiceFallback(value = OtherShipping.class, group = "shipping")
    static class Application {
        /**
         * One thread for all circuit breakers, so that {@code drain} notices when all calls have ended. Those of groups are made at the start,
         * with the thread pool of that time.
         */
        @Bean(destroyMethod = "shutdownNow")
        ExecutorService one() {
            return Executors.newSingleThreadExecutor();
        }

        @Bean
        Customizer<Resilience4JCircuitBreakerFactory> ofCircuitBreakers(ExecutorService one) {
            return factory -> factory.configureExecutorService(one);
        }
    }

    private static Picking picking;
    private static Picking packing;

    @BeforeAll
    static void start() {
        application = runWithCircuitBreakers(
                Application.class,
                "spring.http.serviceclient.billing.base-url=${proxy}",
                "spring.http.serviceclient.shipping.base-url=${proxy}",
                "spring.http.serviceclient.picking.base-url=${proxy}",
                "spring.http.serviceclient.packing.base-url=${proxy}",
                "resilience4j.timelimiter.instances.billing.timeout-duration=5s",
                "resilience4j.timelimiter.instances.shipping.timeout-duration=3m",
                "resilience4j.timelimiter.instances.picking.timeout-duration=2s",
                "resilience4j.timelimiter.instances.packing.timeout-duration=2s",
                "resilience4j.timelimiter.instances.packing.cancel-running-future=false",
                "idempotence.client.clients.[billing#createOnce].retry.max-attempts=1",
                "idempotence.client.clients.shipping.retry.max-attempts=2");
        // The first calls load classes. On a busy machine that takes longer than their limit.
        BillingExchange billing = application.getBean(BillingExchange.class);
        await().ignoreExceptions().until(() -> billing.create("tea").endsWith(": tea"));
        picking = application.getBean(PickingExchange.class);
        packing = application.getBean(PackingExchange.class);
        for (Picking client : List.of(picking, packing)) {
            await().until(() -> client.create("tea").startsWith("order"));
            await().until(() -> client.createWithoutCause("tea").startsWith("order"));
        }
    }

    /** Waits for the end of all calls. */
    @AfterEach
    void drain() throws Exception {
        application.getBean(ExecutorService.class).submit(() -> {}).get(60, TimeUnit.SECONDS);
    }

    /** Spring Cloud puts a circuit breaker around each group, whose time limiter runs a call in another thread. */
    @Test
    void clientsHaveTheNameOfTheirGroupAndMethodAndTheScopeOfTheirCaller() throws Exception {
        BillingExchange billing = application.getBean(BillingExchange.class);
        proxy.loseResponses(1);
        assertThat(billing.create("tea")).endsWith(": tea");
        assertThat(proxy.headers("Idempotency-Key")).hasSize(2).doesNotContain("-");
        assertThat(proxy.headers("Idempotency-Key").stream().distinct()).hasSize(1);
        String sent = proxy.headers("Idempotency-Key").get(0);
        assertThat(events())
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

    @Test
    void fallbackOfACircuitBreakerIsAPlainCall() {
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

    /** The fallback always got a plain TimeoutException, as after a call that had not been executed. */
    @Test
    void fallbackSeesTheUnknownOutcomeWhenTheLimiterEndsTheCall() {
        CountDownLatch held = new CountDownLatch(1);
        provider.holdOrdersUntil(held);
        try {
            assertThat(picking.create("tea")).isEqualTo(unknown());
            proxy.forget();
            assertThat(picking.createWithoutCause("tea")).isEqualTo(unknown());
        } finally {
            held.countDown();
        }
    }

    private static String unknown() {
        await("the request arrives").until(() -> !proxy.requests().isEmpty());
        return "unknown, ID " + proxy.headers("Idempotency-Key").get(0);
    }

    @Test
    void callThatTheLimiterEndedInTheQueueOfItsThreadIsNeverSent() throws Exception {
        CountDownLatch held = new CountDownLatch(1);
        provider.holdOrdersUntil(held);
        try {
            FutureTask<String> first = new FutureTask<>(() -> packing.create("tea"));
            new Thread(first, "first caller").start();
            await().until(() -> proxy.requests().size() == 1);
            assertThat(packing.create("coffee")).isEqualTo("not executed");
            assertThat(packing.createWithoutCause("coffee")).isEqualTo("not executed");
            held.countDown();
            first.get(60, TimeUnit.SECONDS);
            drain();
            assertThat(proxy.requests()).hasSize(1);
        } finally {
            held.countDown();
        }
    }
}
