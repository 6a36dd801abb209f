package io.idempotence.it.architecture;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** The shape of the source files of all modules. */
class SourceFilesTest {
    private static final Path ROOT = Path.of("..");
    private static final int MOST_LINES = 450;

    private static final Pattern INTERNALS = Pattern.compile("io\\.idempotence\\.(client\\.)?internal\\.");

    /** What an indented line declares. Modifiers stand before it, and a comment or a text block begins otherwise. */
    private static final Pattern NESTED_TYPE = Pattern.compile(
            "^\\s+(?:(?:public|protected|private|static|final|abstract|sealed|non-sealed)\\s+)*"
                    + "(?:class|interface|@interface|enum|record)\\s+(\\w+)\\s*(?:[<({]|extends|implements|$)",
            Pattern.MULTILINE);

    private static List<Path> sources(String folder) throws IOException {
        List<Path> found = new ArrayList<>();
        for (Path module : modules()) {
            if (Files.isDirectory(module.resolve(folder))) {
                try (Stream<Path> files = Files.walk(module.resolve(folder))) {
                    files.filter(file -> file.toString().endsWith(".java")).forEach(found::add);
                }
            }
        }
        return found;
    }

    /** The folders with a POM, down to those of the Spring modules. */
    private static List<Path> modules() throws IOException {
        try (Stream<Path> folders =
                Files.find(ROOT, 2, (path, attributes) -> attributes.isDirectory() && !path.endsWith("target"))) {
            return folders.filter(folder -> Files.isDirectory(folder.resolve("src")))
                    .toList();
        }
    }

    private static String name(Path file) {
        return file.getFileName().toString().replace(".java", "");
    }

    @Test
    void noFileIsLong() throws IOException {
        List<String> tooLong = new ArrayList<>();
        for (Path file : sources("src")) {
            long lines = Files.readString(file).lines().count();
            if (lines > MOST_LINES) {
                tooLong.add(name(file) + " has " + lines + " lines");
            }
        }
        assertThat(tooLong).as("files with more than %s lines", MOST_LINES).isEmpty();
    }

    /** Packages that are public to the compiler but not to users. The tests of this module count as users. */
    @Test
    void integrationTestsUseNoInternals() throws IOException {
        List<String> uses = new ArrayList<>();
        for (Path file : sources("src/test/java/io/idempotence/it")) {
            boolean ofTheRules = file.getParent().endsWith("architecture");
            if (!ofTheRules && INTERNALS.matcher(Files.readString(file)).find()) {
                uses.add(name(file));
            }
        }
        assertThat(uses).isEmpty();
    }

    /** Beside each other, a reader could not tell them apart. */
    @Test
    void noNestedTypeOfTheProductHasTheNameOfATopLevelOne() throws IOException {
        List<Path> product = sources("src/main/java").stream()
                .filter(file -> ROOT.relativize(file).getName(0).toString().startsWith("idempotence-"))
                .toList();
        Set<String> topLevel = product.stream().map(SourceFilesTest::name).collect(Collectors.toSet());
        assertThat(topLevel).contains("IdempotenceFilter", "IdempotenceScope");
        List<String> repeated = new ArrayList<>();
        for (Path file : product) {
            NESTED_TYPE
                    .matcher(Files.readString(file))
                    .results()
                    .map(nested -> nested.group(1))
                    .filter(topLevel::contains)
                    .forEach(nested -> repeated.add(name(file) + "." + nested));
        }
        assertThat(repeated).isEmpty();
    }
}
