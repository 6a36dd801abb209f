package io.idempotence.spring.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import feign.Client;
import feign.FeignException;
import io.idempotence.client.OutcomeUnknown;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.List;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.cloud.client.loadbalancer.LoadBalanced;
import org.springframework.cloud.openfeign.EnableFeignClients;
import org.springframework.cloud.openfeign.FeignClient;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.RestTemplate;

/** Feign clients, {@code RestClient} and {@code RestTemplate} of a service with several instances, and a load balancer that would retry every method by itself. */
class LoadBalancedClientsTest {
    private static OrdersProvider provider;
    private static LossyProxy first;
    private static LossyProxy second;
    private static ConfigurableApplicationContext application;

    @FeignClient(name = "orders")
    interface Orders {
        @PostMapping("/orders")
        String create(@RequestBody String order);

        @GetMapping("/orders")
        String list();
    }

    @FeignClient(name = "down")
    interface Down {
        @PostMapping("/orders")
        String create(@RequestBody String order);
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @EnableFeignClients(clients = {Orders.class, Down.class})
    static class Application {
        /** As Spring Cloud's manual has it: Boot's customizers do not see it. */
        @Bean
        @LoadBalanced
        RestClient.Builder balanced() {
            return RestClient.builder();
        }

        @Bean
        @LoadBalanced
        RestTemplate template() {
            return new RestTemplate();
        }
    }

    @BeforeAll
    static void start() throws IOException {
        provider = OrdersProvider.shared();
        first = LossyProxy.before(provider.port());
        second = LossyProxy.before(provider.port());
        int nobody;
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            nobody = free.getLocalPort();
        }
        application = new SpringApplicationBuilder(Application.class)
                .web(WebApplicationType.NONE)
                .properties(
                        "spring.main.banner-mode=off",
                        "spring.cloud.discovery.client.simple.instances.orders[0].uri=" + first.url(),
                        "spring.cloud.discovery.client.simple.instances.orders[1].uri=" + second.url(),
                        "spring.cloud.discovery.client.simple.instances.down[0].uri=http://127.0.0.1:" + nobody,
                        "spring.cloud.loadbalancer.retry.retry-on-all-operations=true",
                        "spring.cloud.loadbalancer.retry.max-retries-on-next-service-instance=2",
                        "spring.cloud.loadbalancer.cache.enabled=false",
                        "idempotence.client.clients.orders.enabled=true",
                        "idempotence.client.deadline=2m",
                        "idempotence.client.retry.wait=1ms",
                        "idempotence.client.retry.max-attempts=4")
                .run();
    }

    @AfterAll
    static void stop() throws Exception {
        application.close();
        first.close();
        second.close();
    }

    private static List<String> sent(String header) {
        return Stream.of(first, second)
                .flatMap(proxy -> proxy.headers(header).stream())
                .sorted()
                .toList();
    }

    private void assertThreeAttemptsAtTwoInstances(UnaryOperator<String> client) {
        provider.executions().set(0);
        first.forget();
        second.forget();
        first.loseResponses(1);
        second.loseResponses(1);
        assertThat(client.apply("tea")).startsWith("order ");
        assertThat(sent("Idempotency-Key").stream().distinct()).hasSize(1);
        assertThat(sent("Idempotency-Attempt"))
                .as("the balancer's own requests would repeat a number")
                .containsExactly("1", "2", "3");
        assertThat(first.requests()).isNotEmpty();
        assertThat(second.requests()).isNotEmpty();
        assertThat(provider.executions()).hasValue(1);
    }

    /** The balancer retries within an attempt, so that its retries and those of the client half multiply. */
    @Test
    void balancerDoesNotMultiplyTheAttemptsOfARestTemplate() {
        provider.executions().set(0);
        first.forget();
        second.forget();
        first.loseResponses(99);
        second.loseResponses(99);
        RestTemplate client = application.getBean(RestTemplate.class);
        assertThatThrownBy(() -> client.postForObject("http://orders/orders", "tea", String.class))
                .isInstanceOf(OutcomeUnknown.class);
        assertThat(sent("Idempotency-Attempt")).containsExactly("1", "2", "3", "4");
        assertThat(provider.executions()).hasValue(1);
    }

    @Test
    void balancerStillRetriesCallsOfARestTemplateWithoutAnId() {
        first.forget();
        second.forget();
        first.loseResponses(1);
        second.loseResponses(1);
        RestTemplate client = application.getBean(RestTemplate.class);
        assertThat(client.getForObject("http://orders/orders", String.class)).isEqualTo("orders");
        assertThat(sent("Idempotency-Key")).hasSizeGreaterThan(1).containsOnly("-");
    }

    @Test
    void attemptsOfARestClientGoToOtherInstancesUnderOneId() {
        RestClient client = application.getBean(RestClient.Builder.class).build();
        assertThreeAttemptsAtTwoInstances(order ->
                client.post().uri("http://orders/orders").body(order).retrieve().body(String.class));
    }

    @Test
    void attemptsOfARestTemplateGoToOtherInstancesUnderOneId() {
        RestTemplate client = application.getBean(RestTemplate.class);
        assertThreeAttemptsAtTwoInstances(order -> client.postForObject("http://orders/orders", order, String.class));
    }

    /** The second request would be part of the first attempt, which the client half could not see. */
    @Test
    void attemptsGoToOtherInstancesUnderOneIdAndTheBalancerDoesNotRetry() {
        assertThat(application.getBean(Client.class).getClass().getSimpleName()).startsWith("Retryable");
        assertThreeAttemptsAtTwoInstances(application.getBean(Orders.class)::create);
    }

    @Test
    void balancerStillRetriesCallsWithoutAnId() {
        first.forget();
        second.forget();
        first.loseResponses(1);
        second.loseResponses(1);
        assertThat(application.getBean(Orders.class).list()).isEqualTo("orders");
        assertThat(sent("Idempotency-Key")).hasSizeGreaterThan(1).containsOnly("-");
    }

    /** A wrapper around the HTTP client that may have sent the request before would leave a doubt. */
    @Test
    void refusedConnectionIsNotInDoubt() {
        assertThatThrownBy(() -> application.getBean(Down.class).create("tea"))
                .isInstanceOf(FeignException.class)
                .isNotInstanceOf(OutcomeUnknown.class);
    }
}
