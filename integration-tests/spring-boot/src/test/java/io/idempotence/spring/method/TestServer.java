package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.web.SecurityFilterChain;

/** An application of Spring Boot on a real Tomcat, and its caller. */
final class TestServer implements AutoCloseable {
    private static final HttpClient CLIENT = HttpClient.newBuilder()
            .version(HttpClient.Version.HTTP_1_1)
            .followRedirects(HttpClient.Redirect.NEVER)
            .build();

    private final ConfigurableApplicationContext context;

    private TestServer(ConfigurableApplicationContext context) {
        this.context = context;
    }

    static TestServer start(Class<?> application, String... arguments) {
        return new TestServer(new SpringApplicationBuilder(application, Application.class)
                .properties(
                        "server.port=0",
                        "spring.main.banner-mode=off",
                        "idempotence.server.storage=memory",
                        "management.health.redis.enabled=false",
                        // Parts of Spring Cloud that only callers need make each start slower.
                        "spring.cloud.refresh.enabled=false",
                        "spring.cloud.loadbalancer.enabled=false",
                        "spring.cloud.discovery.enabled=false")
                .run(arguments));
    }

    /** One server for the tests of handlers. It is closed when the tests end. */
    static TestServer ofHandlers() {
        return Shared.SERVER;
    }

    @Import({IdempotentHandlersTest.Controllers.class, MvcReturnTypesTest.Everything.class})
    private static final class Shared {
        static final TestServer SERVER =
                start(Shared.class, "--orders.retention=36h", "--idempotence.server.policy.lease=20s");
    }

    <T> T bean(Class<T> type) {
        return context.getBean(type);
    }

    ConfigurableApplicationContext context() {
        return context;
    }

    URI uri(String path) {
        return URI.create("http://127.0.0.1:" + context.getEnvironment().getProperty("local.server.port") + path);
    }

    /** The response as the caller sees it. */
    record Response(int status, String body, HttpResponse<byte[]> response) {
        static Response of(HttpResponse<byte[]> response) {
            return new Response(response.statusCode(), new String(response.body(), StandardCharsets.UTF_8), response);
        }

        String header(String name) {
            return response.headers().firstValue(name).orElse(null);
        }

        String refusal() {
            return header("Idempotency-Refusal");
        }

        boolean isReplayed() {
            return "true".equals(header("Idempotent-Replayed"));
        }

        /** Everything that a replay must repeat. */
        List<Object> same() {
            return java.util.Arrays.asList(status, body, header("Content-Type"), header("Location"));
        }
    }

    Response post(String path, String id, String... headers) {
        return send("POST", path, id, "{}", headers);
    }

    Response send(String method, String path, String id, String body, String... headers) {
        try {
            return Response.of(
                    CLIENT.send(request(method, path, id, body, headers), HttpResponse.BodyHandlers.ofByteArray()));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(e);
        }
    }

    CompletableFuture<Response> postAsync(String path, String id, String... headers) {
        return CLIENT.sendAsync(request("POST", path, id, "{}", headers), HttpResponse.BodyHandlers.ofByteArray())
                .thenApply(Response::of);
    }

    /** The first attempt fails, and the next one learns that the outcome is unknown. */
    void assertUnknownAfterAFailure(String path, String id) {
        assertThat(post(path, id).status()).isEqualTo(500);
        assertThat(post(path, id).refusal()).isEqualTo("outcome-unknown");
    }

    /** The first attempt fails, and so does the next one, which runs. */
    void assertRunsAgainAfterAFailure(String path, String id) {
        for (int i = 0; i < 2; i++) {
            Response response = post(path, id);
            assertThat(response.status()).isEqualTo(500);
            assertThat(response.refusal()).as("it runs again").isNull();
            assertThat(response.isReplayed()).isFalse();
        }
    }

    /** The first attempt fails, and the next one gets the same response. */
    void assertReplaysAFailure(String path, String id) {
        Response first = post(path, id);
        Response second = post(path, id);
        assertThat(first.status()).isEqualTo(500);
        assertThat(second.isReplayed()).isTrue();
        assertThat(second.same()).isEqualTo(first.same());
    }

    private HttpRequest request(String method, String path, String id, String body, String... headers) {
        HttpRequest.Builder request =
                HttpRequest.newBuilder(uri(path)).method(method, HttpRequest.BodyPublishers.ofString(body));
        if (id != null) {
            request.header("Idempotency-Key", id);
        }
        if (headers.length == 0) {
            request.header("Content-Type", "application/json");
        } else {
            request.headers(headers);
        }
        return request.build();
    }

    @Override
    public void close() {
        context.close();
    }

    /** An application with the auto-configuration on the class path that providers need. It permits every request. */
    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Application {
        @Bean
        SecurityFilterChain open(HttpSecurity http) throws Exception {
            return http.authorizeHttpRequests(all -> all.anyRequest().permitAll())
                    .csrf(csrf -> csrf.disable())
                    .build();
        }
    }
}
