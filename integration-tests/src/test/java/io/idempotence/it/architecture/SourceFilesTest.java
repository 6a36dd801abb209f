package io.idempotence.it.architecture;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** The shape of the source files of all modules. */
class SourceFilesTest {
    private static final Path ROOT = Path.of("..");
    private static final int MOST_LINES = 450;

    private static final Pattern INTERNALS = Pattern.compile("io\\.idempotence\\.([a-z]+\\.)*internal\\.");

    /** A line that declares a nested type, with its name. A comment or a text block begins otherwise. */
    private static final Pattern NESTED_TYPE = Pattern.compile(
            "^\\s+(?:@\\w+\\s+)*(?:(?:public|protected|private|static|final|abstract|sealed|non-sealed)\\s+)*"
                    + "(?:class|interface|@interface|enum|record)\\s+(\\w+)\\s*(?:[<({]|extends|implements|permits|$)",
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

    private static List<String> nestedTypes(Path file) throws IOException {
        return NESTED_TYPE
                .matcher(Files.readString(file))
                .results()
                .map(declared -> declared.group(1))
                .toList();
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

    /** Neither in a stack trace nor in a search could a reader tell them apart. Only builders are named by what is around them. */
    @Test
    void noTwoTypesOfTheProductHaveTheSameName() throws IOException {
        List<Path> product = sources("src/main/java").stream()
                .filter(file -> ROOT.relativize(file).getName(0).toString().startsWith("idempotence-"))
                .filter(file -> !file.endsWith("package-info.java"))
                .toList();
        Map<String, List<String>> types = new TreeMap<>();
        for (Path file : product) {
            types.computeIfAbsent(name(file), absent -> new ArrayList<>()).add(file.toString());
            for (String nested : nestedTypes(file)) {
                types.computeIfAbsent(nested, absent -> new ArrayList<>()).add(name(file) + "." + nested);
            }
        }
        assertThat(types).containsKeys("IdempotenceFilter", "Refuse", "RedisSettings", "EncodedHeader");
        types.remove("Builder");
        assertThat(types.values()).filteredOn(named -> named.size() > 1).isEmpty();
    }

    /** docs/operations.md has one logger for the filter. */
    @Test
    void filterLogsUnderItsOwnName() throws IOException {
        List<Path> filter = sources("src/main/java").stream()
                .filter(file -> file.getParent().endsWith("io/idempotence/server/servlet"))
                .toList();
        assertThat(filter).isNotEmpty();
        for (Path file : filter) {
            assertThat(Files.readString(file).replace("getLogger(IdempotenceFilter.class)", ""))
                    .as(name(file))
                    .doesNotContain("getLogger(");
        }
    }
}
