package io.idempotence.spring.client;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.web.bind.annotation.DeleteMapping;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestPart;
import org.springframework.web.bind.annotation.RestController;

/** A provider with the server half. */
final class OrdersProvider {
    private final ConfigurableApplicationContext context;

    private OrdersProvider(ConfigurableApplicationContext context) {
        this.context = context;
    }

    /** One for all test classes: a start takes seconds. Spring closes it when the JVM ends. */
    static OrdersProvider shared() {
        return Shared.PROVIDER;
    }

    private static final class Shared {
        static final OrdersProvider PROVIDER = start();
    }

    private static OrdersProvider start() {
        return new OrdersProvider(new SpringApplicationBuilder(Application.class)
                .web(WebApplicationType.SERVLET)
                .properties(
                        "server.port=0",
                        "idempotence.server.storage=memory",
                        "spring.main.banner-mode=off",
                        "spring.main.allow-bean-definition-overriding=true")
                .run());
    }

    int port() {
        return context.getEnvironment().getRequiredProperty("local.server.port", Integer.class);
    }

    /** How many orders were executed. */
    AtomicInteger executions() {
        return context.getBean(Orders.class).executions;
    }

    /** Orders wait for this, if it is set, before they end. */
    void holdOrdersUntil(CountDownLatch latch) {
        hold(1, latch);
    }

    /** The first order since the executions were set to 0 does not wait, the others do. */
    void holdOrdersAfterTheFirstUntil(CountDownLatch latch) {
        hold(2, latch);
    }

    private void hold(int from, CountDownLatch latch) {
        context.getBean(Orders.class).heldFrom = from;
        context.getBean(Orders.class).latch = latch;
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Application {
        @Bean
        Orders orders() {
            return new Orders();
        }

        @Bean
        SecurityFilterChain everybody(HttpSecurity http) throws Exception {
            return http.csrf(csrf -> csrf.disable())
                    .authorizeHttpRequests(requests -> requests.anyRequest().permitAll())
                    .build();
        }
    }

    @RestController
    static class Orders {
        final AtomicInteger executions = new AtomicInteger();
        volatile CountDownLatch latch = new CountDownLatch(0);
        volatile int heldFrom = 1;

        @PostMapping(path = "/orders", produces = "text/plain")
        String create(@RequestBody String order) throws InterruptedException {
            int number = executions.incrementAndGet();
            if (number >= heldFrom) {
                latch.await(20, TimeUnit.SECONDS);
            }
            if (order.equals("broken")) {
                throw new IllegalStateException("as the test asks");
            }
            return "order " + number + ": " + order;
        }

        /** Not protected. */
        @PostMapping(path = "/plain", produces = "text/plain")
        String plain(@RequestBody String order) {
            return "plain: " + order;
        }

        @PostMapping(path = "/documents", produces = "text/plain")
        String keep(@RequestPart("document") String document) {
            return "document " + executions.incrementAndGet() + ": " + document;
        }

        @DeleteMapping(path = "/orders/{id}", produces = "text/plain")
        String cancel(@PathVariable("id") String id) {
            return "cancelled " + id;
        }

        @GetMapping(path = "/orders", produces = "text/plain")
        String list() {
            return "orders";
        }
    }
}
