package io.idempotence.examples.snippets;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceConfigException;
import io.idempotence.client.RetryBudget;
import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What the READMEs show is what is compiled here. */
class ReadmeTest {
    private static final Path ROOT = Path.of("..");
    private static final Path SNIPPETS = Path.of("src/main/java/io/idempotence/examples/snippets");
    private static final Pattern FENCED = Pattern.compile("^```(\\w*)\n(.*?)^```$", Pattern.MULTILINE | Pattern.DOTALL);
    private static final Pattern TAGGED =
            Pattern.compile("^ *// tag::snippet\\[]\n(.*?)^ *// end::snippet\\[]$", Pattern.MULTILINE | Pattern.DOTALL);

    private static final Pattern SETTING = Pattern.compile("^\\| `([a-z.-]+)` \\| ([^|]+) \\|.*$", Pattern.MULTILINE);

    @TempDir
    private Path directory;

    @ParameterizedTest
    @ValueSource(strings = {"README.md", "README.zh-CN.md"})
    void showsTheCompiledCode(String readme) throws IOException {
        assertThat(blocks(readme, "java"))
                .containsExactly(snippet("ConsumerSnippet"), snippet("OkHttpSnippet"), snippet("ProviderSnippet"));
    }

    @Test
    void recipeShowsTheCompiledCode() throws IOException {
        assertThat(blocks("docs/timed-out-calls.md", "java"))
                .containsExactly(snippet("../job/PaymentJob"), snippet("CheckoutSnippet"));
    }

    @Test
    void pageAboutFeignShowsTheCompiledCode() throws IOException {
        assertThat(blocks("docs/feign.md", "java"))
                .containsExactly(snippet("RetrySnippet"), snippet("AsyncRetrySnippet"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"README.md", "README.zh-CN.md"})
    void tableOfSettingsHasEveryKeyWithItsDefault(String readme) throws IOException {
        Map<String, String> table = new LinkedHashMap<>();
        SETTING.matcher(text(ROOT.resolve(readme)))
                .results()
                .dropWhile(row -> !row.group(1).equals("header-style"))
                .forEach(row -> table.put(row.group(1), row.group(2).replace("`", "")));
        assertThatThrownBy(() -> load("idempotence.client.there-is-no-such-key=1"))
                .isInstanceOf(IdempotenceConfigException.class)
                .hasMessageContaining("are [" + String.join(", ", table.keySet()) + "]");

        table.values().removeIf("–"::equals);
        StringBuilder properties = new StringBuilder();
        table.forEach((key, value) -> properties
                .append("idempotence.client.")
                .append(key)
                .append('=')
                .append(value)
                .append('\n'));
        assertThat(settings(load(properties.toString()))).isEqualTo(settings(IdempotenceClientConfig.defaults()));
    }

    @Test
    void exampleOfSettingsIsRead() throws IOException {
        List<String> examples = blocks("README.md", "properties");
        assertThat(examples).hasSize(1);
        IdempotenceClientConfig config = load(examples.get(0));
        assertThat(config.deadline()).isEqualTo(Duration.ofSeconds(8));
        assertThat(config.forClient("orders").deadline()).isEqualTo(Duration.ofSeconds(3));
        assertThat(config.forMethod("orders", "cancel").maxAttempts()).isEqualTo(5);
        assertThat(config.forClient("https://stock.example").deadline()).isEqualTo(Duration.ofSeconds(2));
    }

    @Test
    void showTheSameInBothLanguages() throws IOException {
        assertThat(blocks("README.zh-CN.md", ".*")).isEqualTo(blocks("README.md", ".*"));
    }

    private static List<Object> settings(IdempotenceClientConfig config) {
        RetryBudget budget = config.budget("any");
        long capacity = budget.available();
        assertThat(budget.trySpend()).isTrue();
        long spent = budget.available();
        budget.refund();
        return List.of(
                config.headerStyle(),
                config.methods(),
                config.generator().getClass(),
                config.deadline(),
                config.maxAttempts(),
                config.waitBound(),
                config.multiplier(),
                config.maxWait(),
                config.jitter(),
                config.statuses(),
                config.preferWait(),
                config.serverRetention(),
                capacity,
                spent,
                budget.available());
    }

    private IdempotenceClientConfig load(String properties) throws IOException {
        Files.writeString(directory.resolve("idempotence.properties"), properties);
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        try (URLClassLoader classes =
                new URLClassLoader(new URL[] {directory.toUri().toURL()}, before)) {
            thread.setContextClassLoader(classes);
            return IdempotenceClientConfig.load();
        } finally {
            thread.setContextClassLoader(before);
        }
    }

    private static List<String> blocks(String readme, String language) throws IOException {
        return FENCED.matcher(text(ROOT.resolve(readme)))
                .results()
                .filter(block -> block.group(1).matches(language))
                .map(block -> block.group(2))
                .toList();
    }

    private static String snippet(String name) throws IOException {
        List<String> tagged = TAGGED.matcher(text(SNIPPETS.resolve(name + ".java")))
                .results()
                .map(match -> match.group(1).stripTrailing().stripIndent() + "\n")
                .toList();
        assertThat(tagged).as("tagged parts of %s", name).hasSize(1);
        return tagged.get(0);
    }

    private static String text(Path file) throws IOException {
        return Files.readString(file).replace("\r\n", "\n");
    }
}
