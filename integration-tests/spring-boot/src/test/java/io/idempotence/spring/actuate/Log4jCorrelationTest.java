package io.idempotence.spring.actuate;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.spring.ChildApplication;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.slf4j.LoggerFactory;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;

/** The ID in the log lines of Log4j 2, in a JVM of its own, because the tests themselves log with Logback. */
@Tag("all")
class Log4jCorrelationTest {
    /** Where the build copies what {@code spring-boot-starter-log4j2} brings. */
    private static final Path LOG4J = Path.of("target", "log4j2");

    @Test
    void theIdIsInTheLinesOfAProtectedRequest() throws Exception {
        Stream<String> ofServer = ChildApplication.classPath(
                "spring-boot-",
                "spring-web-",
                "spring-webmvc-",
                "tomcat-embed-core-",
                "jakarta.annotation-api-",
                "log4j-api-");
        String output;
        try (Stream<Path> log4j = Files.list(LOG4J)) {
            output = ChildApplication.outputOf(Application.class, Stream.concat(ofServer, log4j.map(Path::toString)));
        }

        assertThat(output).contains("logs with org.apache.logging.slf4j.Log4jLoggerFactory");
        assertThat(line(output, "booked with an ID")).contains("] [order-1] orders ");
        assertThat(line(output, "booked without an ID")).containsPattern("--- \\[shop] \\[ *\\S+] orders ");
    }

    private static String line(String output, String message) {
        return output.lines()
                .filter(line -> line.contains(message))
                .findFirst()
                .orElseThrow(() -> new AssertionError(output));
    }

    @RestController
    static class Orders {
        @PostMapping("/with")
        void withId() {
            LoggerFactory.getLogger("orders").info("booked with an ID");
        }

        @PostMapping("/without")
        void withoutId() {
            LoggerFactory.getLogger("orders").info("booked without an ID");
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import(Orders.class)
    static class Application {
        public static void main(String[] arguments) throws Exception {
            try (ConfigurableApplicationContext context = new SpringApplicationBuilder(Application.class)
                    .properties("server.port=0", "spring.application.name=shop", "idempotence.server.storage=memory")
                    .run(arguments)) {
                System.out.println("logs with "
                        + LoggerFactory.getILoggerFactory().getClass().getName());
                String server = "http://127.0.0.1:" + context.getEnvironment().getProperty("local.server.port");
                post(HttpRequest.newBuilder(URI.create(server + "/with")).header("Idempotency-Key", "\"order-1\""));
                post(HttpRequest.newBuilder(URI.create(server + "/without")));
            }
        }

        private static void post(HttpRequest.Builder request) throws Exception {
            HttpResponse<String> response = HttpClient.newHttpClient()
                    .send(
                            request.POST(HttpRequest.BodyPublishers.noBody()).build(),
                            HttpResponse.BodyHandlers.ofString());
            if (response.statusCode() != 200) {
                throw new IllegalStateException("expected status 200, got " + response);
            }
        }
    }
}
