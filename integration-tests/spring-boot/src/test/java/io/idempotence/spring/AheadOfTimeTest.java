package io.idempotence.spring;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.File;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.SpringApplicationAotProcessor;
import org.springframework.context.ConfigurableApplicationContext;

/** An application that Spring Boot processes ahead of time. Its storage is chosen only when it runs. */
@Tag("all")
class AheadOfTimeTest {
    static class Processed {
        public static void main(String[] arguments) throws Exception {
            System.setProperty("spring.aot.enabled", "true");
            SpringApplication application = new SpringApplication(AheadOfTimeApplication.class);
            application.setMainApplicationClass(AheadOfTimeApplication.class);
            try (ConfigurableApplicationContext context = application.run(
                    "--server.port=0",
                    "--spring.cloud.refresh.enabled=false",
                    "--idempotence.server.storage=jdbc",
                    "--idempotence.server.jdbc.create-if-missing=true")) {
                URI uri = URI.create(
                        "http://127.0.0.1:" + context.getEnvironment().getProperty("local.server.port"));
                System.out.println("without an ID " + post(uri.resolve("/payments"), null));
                System.out.println("first " + post(uri.resolve("/payments"), "1"));
                System.out.println("retry " + post(uri.resolve("/payments"), "1"));
                System.out.println("failure " + post(uri.resolve("/failures"), "2"));
                System.out.println("retry of the failure " + post(uri.resolve("/failures"), "2"));
                AheadOfTimeApplication.Shipments shipments = context.getBean(AheadOfTimeApplication.Shipments.class);
                System.out.println("shipped once " + shipments.ship("3").equals(shipments.ship("3")));
            }
        }

        private static String post(URI uri, String id) throws Exception {
            HttpRequest.Builder request = HttpRequest.newBuilder(uri).POST(HttpRequest.BodyPublishers.noBody());
            if (id != null) {
                request.header("Idempotency-Key", id);
            }
            HttpResponse<Void> response =
                    HttpClient.newHttpClient().send(request.build(), HttpResponse.BodyHandlers.discarding());
            return response.statusCode() + " "
                    + response.headers().firstValue("Idempotency-Refusal").orElse("")
                    + response.headers()
                            .firstValue("Idempotent-Replayed")
                            .map(any -> "replayed")
                            .orElse("");
        }
    }

    @Test
    void isProtectedAsUsual(@TempDir Path directory) throws Exception {
        Path sources = directory.resolve("sources");
        Path resources = directory.resolve("resources");
        Path classes = directory.resolve("classes");
        // In a JVM of its own: of a class that is generated already, no file would be written.
        ChildApplication.outputOf(
                SpringApplicationAotProcessor.class,
                Stream.of(System.getProperty("java.class.path")),
                AheadOfTimeApplication.class.getName(),
                sources.toString(),
                resources.toString(),
                classes.toString(),
                "group",
                "artifact");
        compile(sources, classes);

        String output = ChildApplication.outputOf(
                Processed.class,
                Stream.of(classes.toString(), resources.toString(), System.getProperty("java.class.path")));

        assertThat(output)
                .contains("Starting AOT-processed")
                .contains("records in the DataSource")
                .contains("without an ID 400 key-missing")
                .contains("first 200")
                .contains("retry 200 replayed")
                .contains("failure 500")
                .contains("retry of the failure 409 outcome-unknown")
                .contains("shipped once true");
    }

    private static void compile(Path sources, Path classes) throws Exception {
        List<String> arguments = new ArrayList<>(List.of(
                "-proc:none",
                "-nowarn",
                "-parameters",
                "-d",
                classes.toString(),
                "-cp",
                classes + File.pathSeparator + System.getProperty("java.class.path")));
        try (Stream<Path> files = Files.walk(sources)) {
            files.map(Path::toString).filter(name -> name.endsWith(".java")).forEach(arguments::add);
        }
        assertThat(ToolProvider.getSystemJavaCompiler().run(null, null, null, arguments.toArray(String[]::new)))
                .isZero();
    }
}
