package io.idempotence.examples.orders;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.examples.orders.network.Fault;
import io.idempotence.examples.orders.network.FaultyNetwork;
import java.io.IOException;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import redis.embedded.RedisServer;

/** The two applications of the README's quick start, from nothing but its snippets, each in a process of its own. */
class QuickStartTest {
    private static final Path QUICK_START = Path.of("../quick-start");
    private static final Path QUICK_START_3 = Path.of("../quick-start-3");
    private static final Pattern VERSIONS_OF_BOOT_3 =
            Pattern.compile("OpenFeign \\(`([.\\d]+)` on Boot `(3[.\\d]+)`\\)");
    private static final String FROM_HERE = "  <!-- README.md, from here ... -->\n";
    private static final String TO_HERE = "  <!-- ... to here -->\n";

    @Test
    void applicationsAreMadeOfTheSnippetsOfTheReadme() throws IOException {
        List<String> snippets = snippets();
        assertThat(snippets).hasSize(3);
        assertThat(withoutHeadAndBuild(QUICK_START)).isEqualTo(snippets.get(0).indent(2));
        assertThat(withoutImports("payments/Payments.java")).isEqualTo(snippets.get(1));
        assertThat(withoutImports("shop/Shop.java")).isEqualTo(snippets.get(2));
    }

    @Test
    void readmeHasTheVersionsOfBothLinesOfBoot() throws IOException {
        Matcher versions = VERSIONS_OF_BOOT_3.matcher(text(Path.of("../../README.md")));
        assertThat(versions.find()).isTrue();
        String pom = snippets()
                .get(0)
                .replaceAll("(starter-parent</artifactId><version>)[^<]+", "$1" + versions.group(2))
                .replaceAll("(openfeign</artifactId><version>)[^<]+", "$1" + versions.group(1));
        assertThat(withoutHeadAndBuild(QUICK_START_3)).isEqualTo(pom.indent(2));
    }

    @Test
    void paysOnceWhateverResponsesAreLost() throws Exception {
        assertPaysOnceWhateverResponsesAreLost(ChildProcess.classPath(QUICK_START));
    }

    @Test
    @Tag("all")
    void paysOnceWhateverResponsesAreLostOnBoot3() throws Exception {
        assertPaysOnceWhateverResponsesAreLost(ChildProcess.classPath(QUICK_START_3));
    }

    private static void assertPaysOnceWhateverResponsesAreLost(String classPath) throws Exception {
        int redisPort = OrdersDemo.freePort();
        RedisServer redis = RedisServer.newRedisServer()
                .port(redisPort)
                .bind("127.0.0.1")
                .setting("save \"\"")
                .build();
        redis.start();
        try (ChildProcess payments = ChildProcess.start(
                        classPath, "quickstart.payments.Payments", "--spring.data.redis.port=" + redisPort);
                FaultyNetwork network = FaultyNetwork.open(payments.url());
                ChildProcess shop = ChildProcess.start(
                        classPath,
                        "quickstart.shop.Shop",
                        "--spring.data.redis.port=" + redisPort,
                        "--payments.url=" + network.url())) {
            network.breakNext(Fault.LOSE_RESPONSE);
            assertThat(order(shop, "tea")).isEqualTo("payment 1 for tea");
            assertThat(network.requests()).isEqualTo(2);

            assertThat(order(shop, "tea")).isEqualTo("payment 2 for tea");
            assertThat(network.requests()).isEqualTo(3);

            network.breakNext(Fault.LOSE_ALL_RESPONSES);
            HttpResponse<String> inDoubt = send(shop, "cake", "\"order-3\"");
            assertThat(inDoubt.statusCode()).isEqualTo(500);
            network.breakNext(Fault.NONE);
            HttpResponse<String> retried = send(shop, "cake", "\"order-3\"");
            assertThat(retried.statusCode()).isEqualTo(200);
            assertThat(retried.body()).isEqualTo("payment 3 for cake");
            assertThat(order(shop, "tea")).isEqualTo("payment 4 for tea");
        } finally {
            redis.stop();
        }
    }

    private static String order(ChildProcess shop, String what) throws IOException, InterruptedException {
        return send(shop, what, null).body();
    }

    private static HttpResponse<String> send(ChildProcess shop, String what, @Nullable String id)
            throws IOException, InterruptedException {
        HttpRequest.Builder request = HttpRequest.newBuilder(shop.url().resolve("/orders"))
                .header("Content-Type", "text/plain")
                .POST(BodyPublishers.ofString(what));
        if (id != null) {
            request.header("Idempotency-Key", id);
        }
        return HttpClient.newHttpClient().send(request.build(), BodyHandlers.ofString());
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

    private static String withoutImports(String name) throws IOException {
        return text(QUICK_START.resolve("src/main/java/quickstart").resolve(name))
                .replaceAll("(?m)^(package|import) .*\n", "")
                .replaceFirst("^\n+", "");
    }

    private static String withoutHeadAndBuild(Path module) throws IOException {
        String pom = text(module.resolve("pom.xml"));
        int begin = pom.indexOf(FROM_HERE);
        int end = pom.indexOf(TO_HERE);
        assertThat(pom.substring(0, begin)).doesNotContain("<parent>", "<depend");
        assertThat(pom.substring(end + TO_HERE.length()).replaceAll("(?s)<build>.*</build>", ""))
                .isEqualToIgnoringWhitespace("</project>");
        return pom.substring(begin + FROM_HERE.length(), end);
    }

    private static String text(Path file) throws IOException {
        return Files.readString(file).replace("\r\n", "\n");
    }
}
