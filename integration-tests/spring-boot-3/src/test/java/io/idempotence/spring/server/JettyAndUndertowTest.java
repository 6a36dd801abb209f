package io.idempotence.spring.server;

import static org.assertj.core.api.Assertions.assertThat;

import jakarta.servlet.Filter;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.net.http.HttpResponse;
import java.util.UUID;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.web.embedded.jetty.JettyServletWebServerFactory;
import org.springframework.boot.web.embedded.undertow.UndertowServletWebServerFactory;
import org.springframework.boot.web.servlet.ServletRegistrationBean;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** The filter has the same place in Jetty and Undertow as in Tomcat. */
class JettyAndUndertowTest {
    private final String id = UUID.randomUUID().toString();

    @ParameterizedTest
    @ValueSource(classes = {OnJetty.class, OnUndertow.class})
    void aFilterThatRefusesCallersIsInFrontEvenWithoutAnOrder(Class<?> server) {
        try (ConfigurableApplicationContext application = start(server)) {
            Caller caller = Caller.of(application);

            assertThat(caller.post("/sales?guest", id).statusCode()).isEqualTo(403);
            HttpResponse<String> first = caller.post("/sales", id);
            assertThat(first.statusCode()).isEqualTo(200);
            assertThat(caller.post("/sales", id).body()).isEqualTo(first.body());
            assertThat(caller.post("/sales?guest", id).statusCode()).isEqualTo(403);
        }
    }

    @ParameterizedTest
    @ValueSource(classes = {OnJetty.class, OnUndertow.class})
    void anOrderPutsOursInFrontOfFiltersWithAGreaterOne(Class<?> server) {
        try (ConfigurableApplicationContext application = start(server, "--idempotence.server.filter-order=0")) {
            Caller caller = Caller.of(application);

            assertThat(caller.post("/sales?guest", id).statusCode()).isEqualTo(403);
            assertThat(caller.post("/sales?guest", id).headers().firstValue("Idempotent-Replayed"))
                    .contains("true");
        }
    }

    private static ConfigurableApplicationContext start(Class<?> server, String... arguments) {
        return new SpringApplicationBuilder(server)
                .properties("server.port=0", "spring.main.banner-mode=off")
                .run(arguments);
    }

    @Configuration(proxyBeanMethods = false)
    static class OnJetty extends Guarded {
        @Bean
        JettyServletWebServerFactory server() {
            return new JettyServletWebServerFactory(0);
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class OnUndertow extends Guarded {
        @Bean
        UndertowServletWebServerFactory server() {
            return new UndertowServletWebServerFactory(0);
        }
    }

    @ImportAutoConfiguration(IdempotenceServerAutoConfiguration.class)
    static class Guarded {
        @Bean
        ServletRegistrationBean<Till.Sale> sale() {
            return new ServletRegistrationBean<>(new Till.Sale(), "/sales");
        }

        @Bean
        Filter guard() {
            return (request, response, chain) -> {
                if (((HttpServletRequest) request).getQueryString() == null) {
                    chain.doFilter(request, response);
                } else {
                    ((HttpServletResponse) response).setStatus(403);
                }
            };
        }
    }
}
