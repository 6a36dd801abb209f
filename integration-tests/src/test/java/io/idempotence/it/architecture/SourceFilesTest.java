package io.idempotence.it.architecture;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
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

    private static final Pattern INTERNALS = Pattern.compile("io\\.idempotence\\.(client\\.)?internal\\.");

    /**
     * A line that declares a nested type: its indentation, its modifiers, what it is, and its name. Modifiers stand before it, and a comment
     * or a text block begins otherwise.
     */
    private static final Pattern NESTED_TYPE = Pattern.compile(
            "^(\\s+)((?:(?:public|protected|private|static|final|abstract|sealed|non-sealed)\\s+)*)"
                    + "(class|interface|@interface|enum|record)\\s+(\\w+)\\s*(?:[<({]|extends|implements|$)",
            Pattern.MULTILINE);

    /** A file's own type that users can name. */
    private static final Pattern PUBLIC_TYPE = Pattern.compile("^public ", Pattern.MULTILINE);

    /** A file's own type whose nested types are public without a modifier. */
    private static final Pattern INTERFACE = Pattern.compile("^(?:[a-z-]+ )*@?interface ", Pattern.MULTILINE);

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

    /**
     * A nested type.
     *
     * @param path its name with those around it
     * @param isPublic whether users can name it, if they can name its package
     */
    private record Nested(String name, String path, int indentation, boolean isPublic, boolean isInterface) {}

    private static List<Nested> nestedTypes(Path file) throws IOException {
        String source = Files.readString(file);
        Deque<Nested> around = new ArrayDeque<>();
        around.push(new Nested(
                name(file),
                name(file),
                0,
                PUBLIC_TYPE.matcher(source).find(),
                INTERFACE.matcher(source).find()));
        List<Nested> found = new ArrayList<>();
        NESTED_TYPE.matcher(source).results().forEach(declared -> {
            int indentation = declared.group(1).length() - declared.group(1).lastIndexOf('\n') - 1;
            while (around.element().indentation >= indentation) {
                around.pop();
            }
            Nested outer = around.element();
            boolean isOpen = outer.isInterface || declared.group(2).matches("(?s).*(public|protected).*");
            Nested type = new Nested(
                    declared.group(4),
                    outer.path + "." + declared.group(4),
                    indentation,
                    outer.isPublic && isOpen,
                    declared.group(3).endsWith("interface"));
            around.push(type);
            found.add(type);
        });
        return found;
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
    void noTwoTypesOfTheProductHaveTheSameName() throws IOException {
        List<Path> product = sources("src/main/java").stream()
                .filter(file -> ROOT.relativize(file).getName(0).toString().startsWith("idempotence-"))
                .filter(file -> !file.endsWith("package-info.java"))
                .toList();
        Map<String, List<String>> topLevel = new TreeMap<>();
        Map<String, List<String>> publicTypes = new TreeMap<>();
        List<Nested> nested = new ArrayList<>();
        for (Path file : product) {
            topLevel.computeIfAbsent(name(file), name -> new ArrayList<>()).add(file.toString());
            nested.addAll(nestedTypes(file));
        }
        assertThat(topLevel).containsKeys("IdempotenceFilter", "IdempotenceScope");
        nested.stream()
                .filter(type -> type.isPublic && !type.name.equals("Builder"))
                .forEach(type -> publicTypes
                        .computeIfAbsent(type.name, name -> new ArrayList<>())
                        .add(type.path));
        assertThat(publicTypes).containsKeys("Refuse", "Outcome", "RedisSettings");

        List<List<String>> repeated = new ArrayList<>();
        nested.stream()
                .filter(type -> topLevel.containsKey(type.name))
                .forEach(type -> repeated.add(List.of(type.name, type.path)));
        Stream.of(topLevel, publicTypes)
                .flatMap(types -> types.values().stream())
                .filter(types -> types.size() > 1)
                .forEach(repeated::add);
        assertThat(repeated).isEmpty();
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
