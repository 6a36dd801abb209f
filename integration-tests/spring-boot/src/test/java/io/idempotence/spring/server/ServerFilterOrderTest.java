package io.idempotence.spring.server;

import static org.assertj.core.api.Assertions.assertThat;

import jakarta.servlet.Filter;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.net.http.HttpResponse;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** The position of the filter among the application's own. */
class ServerFilterOrderTest {
    private final String id = UUID.randomUUID().toString();

    @Test
    void aFilterThatRefusesCallersIsInFrontEvenWithoutAnOrder() {
        try (ConfigurableApplicationContext application = Till.start(Guarded.class)) {
            Caller caller = Caller.of(application);

            assertThat(caller.post("/sales?guest", id).statusCode()).isEqualTo(403);
            HttpResponse<String> first = caller.post("/sales", id);
            assertThat(first.statusCode()).isEqualTo(200);
            assertThat(caller.post("/sales?guest", id).statusCode()).isEqualTo(403);
        }
    }

    @Test
    void anOrderPutsOursInFrontOfFiltersWithAGreaterOne() {
        try (ConfigurableApplicationContext application =
                Till.start(Guarded.class, "--idempotence.server.filter-order=0")) {
            Caller caller = Caller.of(application);

            assertThat(caller.post("/sales?guest", id).statusCode()).isEqualTo(403);
            HttpResponse<String> retry = caller.post("/sales?guest", id);
            assertThat(retry.statusCode()).isEqualTo(403);
            assertThat(retry.headers().firstValue("Idempotent-Replayed")).contains("true");
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Guarded extends Till {
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
