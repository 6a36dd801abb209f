package io.idempotence.spring.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import feign.RequestInterceptor;
import feign.RetryableException;
import feign.Retryer;
import io.github.resilience4j.retry.RetryConfig;
import io.github.resilience4j.retry.RetryRegistry;
import io.idempotence.IdempotenceId;
import io.idempotence.IdempotenceIdGenerator;
import io.idempotence.Idempotent;
import io.idempotence.client.IdempotenceClientEvent.Result;
import io.idempotence.client.IdempotenceClientListener;
import io.idempotence.client.feign.FeignOutcomeUnknownException;
import io.idempotence.client.metrics.IdempotenceClientMetrics;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.cloud.openfeign.EnableFeignClients;
import org.springframework.cloud.openfeign.FeignClient;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.web.bind.annotation.DeleteMapping;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestHeader;

/** Feign clients of an application that has the starter, and no line of code for it. */
class FeignClientsTest extends OrdersConsumer {
    @FeignClient(name = "orders", url = "${proxy}")
    interface Orders {
        @PostMapping("/orders")
        String create(@RequestBody String order);

        @PostMapping("/orders")
        String createOnce(@RequestBody String order);

        @GetMapping("/orders")
        String list();

        @DeleteMapping("/orders/{id}")
        @Idempotent
        String cancel(@PathVariable("id") String id);
    }

    @FeignClient(name = "own-config", url = "${proxy}", configuration = OwnConfiguration.class)
    interface WithOwnConfiguration {
        @PostMapping("/orders")
        String create(@RequestBody String order);
    }

    @FeignClient(name = "plain", url = "${proxy}")
    interface Plain {
        @PostMapping("/plain")
        String create(@RequestBody String order, @RequestHeader("Idempotency-Key") String own);
    }

    @FeignClient(name = "from-registry", url = "${proxy}")
    interface FromRegistry {
        @PostMapping("/orders")
        String create(@RequestBody String order);
    }

    /** A configuration that is a bean of the client's child context only, not of the application. */
    static class OwnConfiguration {
        @Bean
        RequestInterceptor signer() {
            return template ->
                    template.header("X-Signed", template.headers().getOrDefault("Idempotency-Key", List.of("nothing")));
        }

        @Bean
        Retryer retryer() {
            return new Retryer.Default(1, 1, 5);
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import(OrdersConsumer.Events.class)
    @EnableFeignClients(clients = {Orders.class, WithOwnConfiguration.class, Plain.class, FromRegistry.class})
    static class Application {
        @Bean
        IdempotenceClientListener brokenListener() {
            return event -> {
                throw new IllegalStateException("a listener that throws");
            };
        }

        @Bean
        IdempotenceIdGenerator generator() {
            AtomicInteger next = new AtomicInteger();
            return () -> new IdempotenceId("of-the-bean-" + System.nanoTime() + "-" + next.incrementAndGet());
        }

        @Bean
        RetryRegistry retries() {
            RetryRegistry registry = RetryRegistry.ofDefaults();
            registry.retry(
                    "from-registry",
                    RetryConfig.custom()
                            .maxAttempts(2)
                            .waitDuration(Duration.ofMillis(1))
                            .build());
            return registry;
        }

        @Bean
        MeterRegistry meters() {
            return new SimpleMeterRegistry();
        }
    }

    @BeforeAll
    static void start() {
        application = run(
                Application.class,
                "idempotence.client.retry.maxAttempts=3",
                "idempotence.client.clients.orders#createOnce.retry.max-attempts=1",
                "idempotence.client.clients.plain.enabled=false");
    }

    private static <T> T client(Class<T> type) {
        return application.getBean(type);
    }

    private static void assertOneId(int requests) {
        List<String> ids = proxy.headers("Idempotency-Key");
        assertThat(ids).hasSize(requests).doesNotContain("-");
        assertThat(ids.stream().distinct()).hasSize(1);
    }

    @Test
    void lostResponseIsAskedForAgainAndTheOrderIsExecutedOnce() {
        proxy.loseResponses(2);
        assertThat(client(Orders.class).create("tea")).isEqualTo("order 1: tea");
        assertThat(provider.executions()).hasValue(1);
        assertOneId(3);
        assertThat(proxy.headers("Idempotency-Attempt")).containsExactly("1", "2", "3");
        assertThat(events()).singleElement().satisfies(event -> {
            assertThat(event.client()).isEqualTo("orders");
            assertThat(event.result()).isEqualTo(Result.REPLAYED);
        });
    }

    @Test
    void twoCallsHaveTwoIdsOfTheGeneratorBean() {
        client(Orders.class).create("tea");
        client(Orders.class).create("tea");
        assertThat(provider.executions()).hasValue(2);
        assertThat(proxy.headers("Idempotency-Key"))
                .doesNotHaveDuplicates()
                .allMatch(id -> id.startsWith("\"of-the-bean-"));
    }

    @Test
    void settingsOfOneMethodApplyToItOnly() {
        proxy.loseResponses(1);
        assertThatThrownBy(() -> client(Orders.class).createOnce("tea"))
                .isInstanceOfSatisfying(
                        FeignOutcomeUnknownException.class,
                        unknown -> assertThat("\"" + unknown.id() + "\"")
                                .isEqualTo(proxy.headers("Idempotency-Key").get(0)));
        assertThat(proxy.requests()).hasSize(1);
    }

    @Test
    void retryOfTheRegistryBeanApplies() {
        proxy.loseResponses(9);
        assertThatThrownBy(() -> client(FromRegistry.class).create("tea"))
                .isInstanceOf(FeignOutcomeUnknownException.class);
        assertOneId(2);
    }

    @Test
    void getCarriesNoIdAndAnnotatedDeleteDoes() {
        client(Orders.class).list();
        client(Orders.class).cancel("7");
        assertThat(proxy.headers("Idempotency-Key").get(0)).isEqualTo("-");
        assertThat(proxy.headers("Idempotency-Key").get(1)).startsWith("\"");
    }

    /** A signature that does not cover the ID would be one of another request. */
    @Test
    void interceptorOfAClientsOwnConfigurationSeesTheId() {
        proxy.loseResponses(1);
        client(WithOwnConfiguration.class).create("tea");
        assertOneId(2);
        assertThat(proxy.headers("X-Signed")).isEqualTo(proxy.headers("Idempotency-Key"));
        assertThat(provider.executions()).hasValue(1);
    }

    /** With Feign's Retryer below it, 3 attempts would be 15 requests. */
    @Test
    void retryerOfAClientsOwnConfigurationDoesNotMultiplyAttempts() {
        proxy.loseResponses(99);
        assertThatThrownBy(() -> client(WithOwnConfiguration.class).create("tea"))
                .isInstanceOf(FeignOutcomeUnknownException.class);
        assertOneId(3);
    }

    @Test
    void clientThatIsSwitchedOffBehavesAsWithoutTheStarter() {
        client(Plain.class).create("tea", "of-the-caller");
        assertThat(proxy.headers("Idempotency-Key")).containsExactly("of-the-caller");
        proxy.loseResponses(1);
        assertThatThrownBy(() -> client(Plain.class).create("tea", "x")).isInstanceOf(RetryableException.class);
    }

    @Test
    void callsAreMeasured() {
        client(Orders.class).create("tea");
        assertThat(application
                        .getBean(MeterRegistry.class)
                        .find(IdempotenceClientMetrics.CALLS)
                        .tag("client", "orders")
                        .timers())
                .isNotEmpty();
    }
}
