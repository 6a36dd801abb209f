package io.idempotence.examples.orders;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.examples.orders.network.Fault;
import io.idempotence.examples.orders.network.FaultyNetwork;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import redis.embedded.RedisServer;

/** The two applications of the README's quick start, from nothing but its snippets, each in a process of its own. */
class QuickStartTest {
    private static final Path QUICK_START = Path.of("../quick-start");
    private static final Pattern PORT = Pattern.compile("Tomcat started on port (\\d+)");

    @Test
    void applicationsAreMadeOfTheSnippetsOfTheReadme() throws IOException {
        List<String> snippets = snippets();
        assertThat(snippets).hasSize(3);
        assertThat(text(QUICK_START.resolve("pom.xml")))
                .contains(snippets.get(0).indent(2));
        assertThat(text(source("payments/Payments.java"))).contains(snippets.get(1));
        assertThat(text(source("shop/Shop.java"))).contains(snippets.get(2));
    }

    @Test
    void paysOnceWhenTheResponseIsLost() throws Exception {
        int redisPort = OrdersDemo.freePort();
        RedisServer redis = RedisServer.newRedisServer()
                .port(redisPort)
                .bind("127.0.0.1")
                .setting("save \"\"")
                .build();
        redis.start();
        try (Application payments =
                        Application.start("quickstart.payments.PaymentsMain", "--spring.data.redis.port=" + redisPort);
                FaultyNetwork network = FaultyNetwork.open(payments.url());
                Application shop = Application.start(
                        "quickstart.shop.ShopMain",
                        "--spring.data.redis.port=" + redisPort,
                        "--payments.url=" + network.url())) {
            network.breakNext(Fault.LOSE_RESPONSE);
            assertThat(order(shop, "tea")).isEqualTo("payment 1 for tea");
            assertThat(network.requests()).isEqualTo(2);

            assertThat(order(shop, "tea")).isEqualTo("payment 2 for tea");
            assertThat(network.requests()).isEqualTo(3);
        } finally {
            redis.stop();
        }
    }

    private static String order(Application shop, String what) throws IOException, InterruptedException {
        HttpRequest request = HttpRequest.newBuilder(shop.url().resolve("/orders"))
                .header("Content-Type", "text/plain")
                .POST(BodyPublishers.ofString(what))
                .build();
        return HttpClient.newHttpClient().send(request, BodyHandlers.ofString()).body();
    }

    private static List<String> snippets() throws IOException {
        Matcher fenced = Pattern.compile("^```(?:xml|java)\n(.*?)^```$", Pattern.MULTILINE | Pattern.DOTALL)
                .matcher(text(Path.of("../../README.md")));
        List<String> found = new ArrayList<>();
        while (fenced.find()) {
            found.add(fenced.group(1));
        }
        return found;
    }

    private static Path source(String name) {
        return QUICK_START.resolve("src/main/java/quickstart").resolve(name);
    }

    private static String text(Path file) throws IOException {
        return Files.readString(file).replace("\r\n", "\n");
    }

    /** A process. */
    private record Application(Process process, URI url) implements AutoCloseable {
        static Application start(String mainClass, String... args) throws Exception {
            List<String> command = new ArrayList<>(List.of(
                    Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                    "-XX:TieredStopAtLevel=1",
                    "-XX:+UseSerialGC",
                    "-classpath",
                    QUICK_START.resolve("target/classes").toAbsolutePath()
                            + File.pathSeparator
                            + text(QUICK_START.resolve("target/class-path.txt")).strip(),
                    mainClass,
                    "--server.port=0",
                    "--server.address=127.0.0.1"));
            command.addAll(List.of(args));
            Process process =
                    new ProcessBuilder(command).redirectErrorStream(true).start();
            CompletableFuture<Integer> port = new CompletableFuture<>();
            Thread reader = new Thread(() -> read(process, port), mainClass);
            reader.setDaemon(true);
            reader.start();
            try {
                return new Application(process, URI.create("http://127.0.0.1:" + port.get(2, TimeUnit.MINUTES)));
            } catch (Exception e) {
                process.destroyForcibly();
                throw e;
            }
        }

        private static void read(Process process, CompletableFuture<Integer> port) {
            StringBuilder log = new StringBuilder();
            try (BufferedReader out = process.inputReader()) {
                for (String line = out.readLine(); line != null; line = out.readLine()) {
                    log.append(line).append('\n');
                    System.out.println(line);
                    Matcher started = PORT.matcher(line);
                    if (started.find()) {
                        port.complete(Integer.parseInt(started.group(1)));
                    }
                }
                port.completeExceptionally(new IllegalStateException("the application ended:\n" + log));
            } catch (IOException e) {
                port.completeExceptionally(e);
            }
        }

        @Override
        public void close() {
            process.destroy();
            process.onExit().join();
        }
    }
}
