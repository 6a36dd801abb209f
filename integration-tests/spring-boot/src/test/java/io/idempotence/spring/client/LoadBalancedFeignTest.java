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
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.cloud.openfeign.EnableFeignClients;
import org.springframework.cloud.openfeign.FeignClient;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;

/** Feign clients of a service with several instances, and a load balancer that would retry every method by itself. */
class LoadBalancedFeignTest {
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
    static class Application {}

    @BeforeAll
    static void start() throws IOException {
        provider = OrdersProvider.start();
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
                        "idempotence.client.retry.wait=1ms",
                        "idempotence.client.retry.max-attempts=4")
                .run();
    }

    @AfterAll
    static void stop() throws Exception {
        application.close();
        first.close();
        second.close();
        provider.close();
    }

    private static List<String> sent(String header) {
        return java.util.stream.Stream.of(first, second)
                .flatMap(proxy -> proxy.headers(header).stream())
                .sorted()
                .toList();
    }

    /** The second request would be part of the first attempt, which the client half could not see. */
    @Test
    void attemptsGoToOtherInstancesUnderOneIdAndTheBalancerDoesNotRetry() {
        assertThat(application.getBean(Client.class).getClass().getSimpleName()).startsWith("Retryable");
        first.forget();
        second.forget();
        first.loseResponses(1);
        second.loseResponses(1);
        assertThat(application.getBean(Orders.class).create("tea")).startsWith("order ");
        assertThat(sent("Idempotency-Key").stream().distinct()).hasSize(1);
        assertThat(sent("Idempotency-Attempt")).containsExactly("1", "2", "3");
        assertThat(first.requests()).isNotEmpty();
        assertThat(second.requests()).isNotEmpty();
        assertThat(provider.executions()).hasValue(1);
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
