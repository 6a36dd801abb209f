package io.idempotence.examples.orders;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.examples.orders.network.Fault;
import io.idempotence.examples.orders.network.FaultyNetwork;
import java.io.IOException;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import redis.embedded.RedisServer;

/** The two applications of the README's quick start, from nothing but its snippets, each in a process of its own. */
class QuickStartTest {
    private static final Path QUICK_START = Path.of("../quick-start");
    private static final Path QUICK_START_3 = Path.of("../quick-start-3");
    private static final Pattern VERSIONS_OF_BOOT_3 =
            Pattern.compile("OpenFeign \\(on Boot `(3[.\\d]+)`: `([.\\d]+)`\\)");

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
    void readmeNamesTheVersionsOfBothLinesOfBoot() throws IOException {
        Matcher versions = VERSIONS_OF_BOOT_3.matcher(text(Path.of("../../README.md")));
        assertThat(versions.find()).isTrue();
        String pom = snippets()
                .get(0)
                .replaceAll("(starter-parent</artifactId><version>)[^<]+", "$1" + versions.group(1))
                .replaceAll("(openfeign</artifactId><version>)[^<]+", "$1" + versions.group(2));
        assertThat(text(QUICK_START_3.resolve("pom.xml"))).contains(pom.indent(2));
    }

    @Test
    void paysOnceWhenTheResponseIsLost() throws Exception {
        assertPaysOnceWhenTheResponseIsLost(ChildProcess.classPath(QUICK_START));
    }

    @Test
    @Tag("all")
    void paysOnceWhenTheResponseIsLostOnBoot3() throws Exception {
        assertPaysOnceWhenTheResponseIsLost(ChildProcess.classPath(QUICK_START_3));
    }

    private static void assertPaysOnceWhenTheResponseIsLost(String classPath) throws Exception {
        int redisPort = OrdersDemo.freePort();
        RedisServer redis = RedisServer.newRedisServer()
                .port(redisPort)
                .bind("127.0.0.1")
                .setting("save \"\"")
                .build();
        redis.start();
        try (ChildProcess payments = ChildProcess.start(
                        classPath, "quickstart.payments.PaymentsMain", "--spring.data.redis.port=" + redisPort);
                FaultyNetwork network = FaultyNetwork.open(payments.url());
                ChildProcess shop = ChildProcess.start(
                        classPath,
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

    private static String order(ChildProcess shop, String what) throws IOException, InterruptedException {
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
}
