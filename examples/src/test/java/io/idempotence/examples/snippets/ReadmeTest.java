package io.idempotence.examples.snippets;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceClientConfigException;
import io.idempotence.client.RetryBudget;
import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests that what the READMEs show is what is compiled here. */
class ReadmeTest {
    private static final Path ROOT = Path.of("..");
    private static final Path SNIPPETS = Path.of("src/main/java/io/idempotence/examples/snippets");
    private static final Pattern FENCED = Pattern.compile("^```(\\w*)\n(.*?)^```$", Pattern.MULTILINE | Pattern.DOTALL);
    private static final Pattern TAGGED =
            Pattern.compile("^ *// tag::snippet\\[]\n(.*?)^ *// end::snippet\\[]$", Pattern.MULTILINE | Pattern.DOTALL);

    private static final Pattern SETTING = Pattern.compile("^\\| `([a-z.-]+)` \\| ([^|]+) \\|.*$", Pattern.MULTILINE);

    private static final Pattern LINK = Pattern.compile("]\\((?!https?:)([^)#\\s]*)(?:#([^)\\s]+))?\\)");
    private static final Pattern CELL_BORDER = Pattern.compile("(?<!\\\\)\\|");
    private static final Pattern WORD = Pattern.compile("\\p{IsHan}{1,2}|[^\\s\\p{IsHan}]+");
    private static final Pattern HEADING = Pattern.compile("^#{1,6} (.+)$", Pattern.MULTILINE);
    private static final Pattern PROPERTY = Pattern.compile("(?<![\\w.])idempotence\\.[a-z]+(?:[.-][a-z]+)*");

    @TempDir
    private Path directory;

    @Test
    void pageAboutServersShowsTheCompiledCode() throws IOException {
        assertThat(blocks("docs/server-configuration.md", "java"))
                .containsExactly(snippet("ProviderSnippet"), snippet("FilterSnippet"));
    }

    @Test
    void pageAboutOkHttpShowsTheCompiledCode() throws IOException {
        assertThat(blocks("docs/okhttp.md", "java")).containsExactly(snippet("OkHttpSnippet"));
    }

    @Test
    void recipeShowsTheCompiledCode() throws IOException {
        assertThat(blocks("docs/timed-out-calls.md", "java"))
                .containsExactly(snippet("../job/PaymentJob"), snippet("CheckoutSnippet"));
    }

    @Test
    void pageAboutFeignShowsTheCompiledCode() throws IOException {
        assertThat(blocks("docs/feign.md", "java"))
                .containsExactly(snippet("ConsumerSnippet"), snippet("RetrySnippet"), snippet("AsyncRetrySnippet"));
    }

    @Test
    void noOtherPageHasCode() throws IOException {
        List<String> pages = new ArrayList<>();
        for (Path page : pages()) {
            if (!blocks(ROOT.relativize(page).toString(), "java").isEmpty()) {
                pages.add(page.getFileName().toString());
            }
        }
        assertThat(pages)
                .as("pages whose code is compiled: here, in DocumentedCodeTest, and in the quick start's test")
                .containsExactlyInAnyOrder(
                        "README.md",
                        "README.zh-CN.md",
                        "feign.md",
                        "messages.md",
                        "okhttp.md",
                        "server-configuration.md",
                        "spring-client.md",
                        "spring-client.zh-CN.md",
                        "spring.md",
                        "spring.zh-CN.md",
                        "storage-jdbc.md",
                        "timed-out-calls.md");
    }

    @Test
    void tableOfSettingsHasEveryKeyWithItsDefault() throws IOException {
        Map<String, String> table = new LinkedHashMap<>();
        SETTING.matcher(text(ROOT.resolve("docs/client-configuration.md")))
                .results()
                .dropWhile(row -> !row.group(1).equals("enabled"))
                .forEach(row -> table.put(row.group(1), row.group(2).replace("`", "")));
        assertThatThrownBy(() -> load("idempotence.client.there-is-no-such-key=1"))
                .isInstanceOf(IdempotenceClientConfigException.class)
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
        List<String> examples = blocks("docs/client-configuration.md", "properties");
        assertThat(examples).hasSize(1);
        IdempotenceClientConfig config = load(examples.get(0));
        assertThat(config.deadline()).isEqualTo(Duration.ofSeconds(8));
        assertThat(config.forClient("orders").deadline()).isEqualTo(Duration.ofSeconds(3));
        assertThat(config.forMethod("orders", "cancel").maxAttempts()).isEqualTo(5);
        assertThat(config.forClient("https://stock.example").deadline()).isEqualTo(Duration.ofSeconds(2));
    }

    /** The prose is not compared, but a section, an example or a property that one language lacks is found. */
    @ParameterizedTest
    @MethodSource("translatedPages")
    void chinesePageHasTheSectionsTheCodeAndThePropertiesOfItsEnglishPage(Path english) throws IOException {
        Path chinese = english.resolveSibling(english.getFileName().toString().replace(".md", ".zh-CN.md"));
        assertThat(chinese).exists();
        assertThat(fenced(chinese, ".*")).isEqualTo(fenced(english, ".*"));
        assertThat(headingLevels(chinese)).isEqualTo(headingLevels(english));
        assertThat(properties(chinese)).isEqualTo(properties(english));
    }

    static List<Path> translatedPages() throws IOException {
        return pages().stream()
                .filter(page -> page.getFileName().toString().matches("(README|spring.*)(?<!\\.zh-CN)\\.md"))
                .toList();
    }

    private static List<Integer> headingLevels(Path page) throws IOException {
        return HEADING.matcher(prose(page))
                .results()
                .map(heading -> heading.group().indexOf(' '))
                .toList();
    }

    private static Set<String> properties(Path page) throws IOException {
        return PROPERTY.matcher(text(page))
                .results()
                .map(MatchResult::group)
                .collect(Collectors.toCollection(TreeSet::new));
    }

    /** Pages of this repository only; a link to elsewhere begins with a scheme. */
    @ParameterizedTest
    @MethodSource("pages")
    void linksLeadToAPageAndAHeadingThatExist(Path page) throws IOException {
        Matcher link = LINK.matcher(prose(page));
        while (link.find()) {
            Path target = link.group(1).isEmpty() ? page : page.resolveSibling(link.group(1));
            assertThat(target).as("%s links to %s", page, link.group()).exists();
            if (link.group(2) != null) {
                assertThat(anchors(target))
                        .as("%s links to %s", page, link.group())
                        .contains(link.group(2));
            }
        }
    }

    @ParameterizedTest
    @MethodSource("pages")
    void noLineIsLongerThan160Bytes(Path page) throws IOException {
        assertThat(text(page).lines())
                .allSatisfy(line -> assertThat(line.getBytes(UTF_8)).hasSizeLessThanOrEqualTo(160));
    }

    /** Two Chinese characters count as a word. */
    @ParameterizedTest
    @MethodSource("pages")
    void noTableCellIsLongerThan25Words(Path page) throws IOException {
        assertThat(text(page)
                        .replaceAll("(?s)```.*?```", "")
                        .lines()
                        .filter(line -> line.startsWith("|"))
                        .flatMap(CELL_BORDER::splitAsStream))
                .allSatisfy(cell -> assertThat(WORD.matcher(cell).results()).hasSizeLessThanOrEqualTo(25));
    }

    @ParameterizedTest
    @ValueSource(strings = {"README.md", "README.zh-CN.md"})
    void fitsOn150Lines(String readme) throws IOException {
        assertThat(text(ROOT.resolve(readme)).lines()).hasSizeLessThanOrEqualTo(150);
    }

    static List<Path> pages() throws IOException {
        try (Stream<Path> root = Files.list(ROOT);
                Stream<Path> docs = Files.list(ROOT.resolve("docs"))) {
            return Stream.concat(root, docs)
                    .filter(file -> file.toString().endsWith(".md"))
                    .sorted()
                    .toList();
        }
    }

    /** As GitHub makes them: lower case, without punctuation, hyphens for spaces. */
    private static List<String> anchors(Path page) throws IOException {
        return HEADING.matcher(prose(page))
                .results()
                .map(heading -> heading.group(1)
                        .toLowerCase(Locale.ROOT)
                        .replaceAll("[^\\p{L}\\p{N} _-]", "")
                        .replace(' ', '-'))
                .toList();
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

    private static String prose(Path page) throws IOException {
        return text(page).replaceAll("(?s)```.*?```", "");
    }

    private static List<String> blocks(String page, String language) throws IOException {
        return fenced(ROOT.resolve(page), language);
    }

    private static List<String> fenced(Path page, String language) throws IOException {
        return FENCED.matcher(text(page))
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
