package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.Idempotent;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.util.Set;
import java.util.UUID;
import org.apache.catalina.Context;
import org.apache.catalina.startup.Tomcat;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.web.servlet.support.SpringBootServletInitializer;
import org.springframework.context.annotation.Import;
import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.server.ResponseStatusException;

/** An application in a WAR, whose error pages are shown by a filter of Spring Boot, not by the container. */
@Tag("all")
@Timeout(180)
class WarDeploymentTest {
    @TempDir
    static Path directory;

    private static Tomcat tomcat;

    private final String id = UUID.randomUUID().toString();

    @RestController
    @Idempotent
    static class Payments {
        @PostMapping("/paid")
        String pay() {
            return "paid " + UUID.randomUUID();
        }

        @PostMapping("/sent")
        void sendError(HttpServletResponse response) throws IOException {
            response.sendError(409, "no money on " + UUID.randomUUID());
        }

        @PostMapping("/thrown")
        void throwStatus() {
            throw new ResponseStatusException(HttpStatus.NOT_FOUND, "no account " + UUID.randomUUID());
        }

        @PostMapping("/kept")
        @Idempotent(keepOn = IllegalArgumentException.class)
        void fail() {
            throw new IllegalArgumentException("not for " + UUID.randomUUID());
        }

        @PostMapping("/released")
        void failForNow() {
            throw new IllegalStateException("later than " + UUID.randomUUID());
        }
    }

    @Import({Payments.class, TestServer.Application.class})
    static class Application {}

    private static final class Initializer extends SpringBootServletInitializer {
        @Override
        protected SpringApplicationBuilder configure(SpringApplicationBuilder application) {
            return application
                    .sources(Application.class)
                    .properties(
                            "idempotence.server.storage=memory",
                            "server.error.include-message=always",
                            "spring.web.error.include-message=always",
                            "spring.main.banner-mode=off");
        }
    }

    @BeforeAll
    static void start() throws Exception {
        tomcat = new Tomcat();
        tomcat.setBaseDir(directory.toString());
        tomcat.setPort(0);
        Context context = tomcat.addContext("/bank", directory.toString());
        context.addServletContainerInitializer((types, servlets) -> new Initializer().onStartup(servlets), Set.of());
        tomcat.getConnector();
        tomcat.start();
    }

    @AfterAll
    static void stop() throws Exception {
        tomcat.stop();
        tomcat.destroy();
    }

    private static TestServer.Response post(String path, String id) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(
                        URI.create("http://127.0.0.1:" + tomcat.getConnector().getLocalPort() + "/bank" + path))
                .header("Idempotency-Key", id)
                .POST(HttpRequest.BodyPublishers.noBody())
                .build();
        return TestServer.Response.of(
                HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofByteArray()));
    }

    /** Error pages were rendered anew for each replay, without what the handler had thrown. */
    @ParameterizedTest
    @DisplayName("P4: a replay is the response of the first request, even if that is an error page")
    @CsvSource({"/paid, 200, paid", "/sent, 409, no money", "/thrown, 404, no account", "/kept, 500, not for"})
    void aReplayIsTheFirstResponse(String path, int status, String body) throws Exception {
        TestServer.Response first = post(path, id);
        TestServer.Response retry = post(path, id);
        assertThat(first.status()).isEqualTo(status);
        assertThat(first.body()).contains(body);
        assertThat(retry.isReplayed()).isTrue();
        assertThat(retry.same()).isEqualTo(first.same());
    }

    @Test
    void aFailureThatIsReleasedRunsAgain() throws Exception {
        TestServer.Response first = post("/released", id);
        TestServer.Response retry = post("/released", id);
        assertThat(first.status()).isEqualTo(500);
        assertThat(first.body()).contains("later than");
        assertThat(retry.isReplayed()).isFalse();
        assertThat(retry.body()).contains("later than").isNotEqualTo(first.body());
    }
}
