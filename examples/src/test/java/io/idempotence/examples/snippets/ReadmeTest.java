package io.idempotence.examples.snippets;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What the READMEs show is what is compiled here. */
class ReadmeTest {
    private static final Path ROOT = Path.of("..");
    private static final Path SNIPPETS = Path.of("src/main/java/io/idempotence/examples/snippets");
    private static final Pattern FENCED = Pattern.compile("^```(\\w*)\n(.*?)^```$", Pattern.MULTILINE | Pattern.DOTALL);
    private static final Pattern TAGGED =
            Pattern.compile("^ *// tag::snippet\\[]\n(.*?)^ *// end::snippet\\[]$", Pattern.MULTILINE | Pattern.DOTALL);

    @ParameterizedTest
    @ValueSource(strings = {"README.md", "README.zh-CN.md"})
    void showsTheCompiledCode(String readme) throws IOException {
        assertThat(blocks(readme, "java"))
                .containsExactly(snippet("ConsumerSnippet"), snippet("OkHttpSnippet"), snippet("ProviderSnippet"));
    }

    @Test
    void showTheSameInBothLanguages() throws IOException {
        assertThat(blocks("README.zh-CN.md", ".*")).isEqualTo(blocks("README.md", ".*"));
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
