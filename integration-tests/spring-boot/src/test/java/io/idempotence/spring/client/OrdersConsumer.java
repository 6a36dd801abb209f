package io.idempotence.spring.client;

import io.idempotence.client.IdempotenceClientEvent;
import io.idempotence.client.IdempotenceClientListener;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.web.service.invoker.HttpServiceProxyFactory;

/**
 * The base of tests of a consumer: an application whose clients call the orders provider through a proxy. They find the proxy by {@code
 * ${proxy}}.
 */
abstract class OrdersConsumer {
    static OrdersProvider provider;
    static LossyProxy proxy;
    /** The application, which the subclass starts. */
    static ConfigurableApplicationContext application;

    @BeforeAll
    static void open() {
        provider = OrdersProvider.shared();
        proxy = LossyProxy.before(provider.port());
    }

    @AfterAll
    static void close() throws Exception {
        application.close();
        proxy.close();
    }

    /** Keeps the events of an application's calls. Import it to use {@link #events}. */
    static class Events {
        private final List<IdempotenceClientEvent> all = new CopyOnWriteArrayList<>();

        @Bean
        IdempotenceClientListener listener() {
            return all::add;
        }
    }

    /** An HTTP service client, as if it were a bean of the application. */
    static <T> T bean(Class<T> type, HttpServiceProxyFactory.Builder factory) {
        T client = factory.build().createClient(type);
        return type.cast(application
                .getAutowireCapableBeanFactory()
                .applyBeanPostProcessorsAfterInitialization(client, type.getName()));
    }

    static List<IdempotenceClientEvent> events() {
        return application.getBean(Events.class).all;
    }

    @BeforeEach
    void forget() {
        application.getBeanProvider(Events.class).ifAvailable(events -> events.all.clear());
        proxy.forget();
        provider.executions().set(0);
    }

    /** Its calls may take longer than a busy machine pauses. */
    static ConfigurableApplicationContext run(Class<?> application, String... properties) {
        return new SpringApplicationBuilder(application)
                .web(WebApplicationType.NONE)
                .properties(
                        "proxy=" + proxy.url(),
                        "spring.main.banner-mode=off",
                        "idempotence.client.deadline=2m",
                        "idempotence.client.retry.wait=1ms")
                .run(Stream.of(properties).map(property -> "--" + property).toArray(String[]::new));
    }

    /** With Resilience4j, which takes half of a start. */
    static ConfigurableApplicationContext runWithCircuitBreakers(Class<?> application, String... properties) {
        return run(
                application,
                Stream.concat(Stream.of("spring.profiles.active=circuit-breakers"), Stream.of(properties))
                        .toArray(String[]::new));
    }
}
