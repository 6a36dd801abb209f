package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.Idempotent;
import java.util.List;
import java.util.UUID;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.web.bind.annotation.CrossOrigin;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.cors.CorsConfiguration;
import org.springframework.web.cors.UrlBasedCorsConfigurationSource;
import org.springframework.web.filter.CorsFilter;

/** Requests of pages of another origin. A browser hides every response that does not allow the origin. */
class CrossOriginTest {
    private static final String SHOP = "https://shop.example";

    private static TestServer server;

    private final String id = UUID.randomUUID().toString();

    @RestController
    static class Payments {
        @Idempotent
        @CrossOrigin(origins = SHOP, allowCredentials = "true", exposedHeaders = "Idempotent-Replayed")
        @PostMapping({"/payments", "/filtered/payments"})
        String pay() {
            return "paid " + UUID.randomUUID();
        }
    }

    /** The filter applies to one of the two paths. */
    @Import(Payments.class)
    static class Application {
        @Bean
        CorsFilter cors() {
            CorsConfiguration shop = new CorsConfiguration();
            shop.addAllowedOrigin(SHOP);
            shop.addAllowedMethod("POST");
            UrlBasedCorsConfigurationSource all = new UrlBasedCorsConfigurationSource();
            all.registerCorsConfiguration("/filtered/**", shop);
            return new CorsFilter(all);
        }
    }

    @BeforeAll
    static void start() {
        server = TestServer.start(Application.class);
    }

    @AfterAll
    static void stop() {
        server.close();
    }

    private static TestServer.Response pay(String path, String id) {
        return server.post(path, id, "Origin", SHOP, "Content-Type", "application/json");
    }

    private static List<String> allowed(TestServer.Response response) {
        return response.response().headers().allValues("Access-Control-Allow-Origin");
    }

    /** Only the first response allowed it. */
    @Test
    void aReplayAllowsTheOriginAsTheFirstResponseDid() {
        TestServer.Response first = pay("/payments", id);
        TestServer.Response retry = pay("/payments", id);
        assertThat(allowed(first)).containsExactly(SHOP);
        assertThat(retry.isReplayed()).isTrue();
        assertThat(allowed(retry)).containsExactly(SHOP);
        assertThat(retry.header("Access-Control-Allow-Credentials")).isEqualTo("true");
        assertThat(retry.header("Access-Control-Expose-Headers")).isEqualTo("Idempotent-Replayed");
    }

    @Test
    void withAFilterInFrontRefusalsAllowTheOriginToo() {
        String path = "/filtered/payments";
        assertThat(pay(path, null).refusal()).isEqualTo("key-missing");
        assertThat(allowed(pay(path, null))).containsExactly(SHOP);
        assertThat(allowed(pay(path, id))).containsExactly(SHOP);
        assertThat(allowed(pay(path, id))).containsExactly(SHOP);
    }
}
