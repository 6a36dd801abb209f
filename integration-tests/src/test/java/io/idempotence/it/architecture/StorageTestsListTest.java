package io.idempotence.it.architecture;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** docs/storage-tests.md says which storage is tested by what: all that there is, and nothing else. */
class StorageTestsListTest {
    private static final Pattern LISTED = Pattern.compile("`(\\w+(?:Test|IT))`( \\(7\\))?");
    private static final List<Path> SOURCES =
            List.of(Path.of("../idempotence-server/src/test/java"), Path.of("src/test/java"));
    private static final Pattern STORAGE_TEST =
            Pattern.compile(".*/io/idempotence/(server/(storage|redis|jdbc)|it/fault)/\\w+(Test|IT)\\.java");

    @Test
    void theListIsWhatRuns() throws IOException {
        Map<String, Boolean> listed = new TreeMap<>();
        LISTED.matcher(Files.readString(Path.of("../docs/storage-tests.md")).replaceAll("(?m)^[^|].*$", ""))
                .results()
                .forEach(each -> listed.merge(each.group(1), each.group(2) != null, (a, b) -> a && b));
        Map<String, Boolean> runs = new TreeMap<>();
        Map<String, Boolean> ofStorages = new TreeMap<>();
        for (Path root : SOURCES) {
            try (Stream<Path> files = Files.walk(root)) {
                files.filter(file -> file.toString().endsWith(".java")).forEach(file -> {
                    String name = file.getFileName().toString().replace(".java", "");
                    runs.put(name, onBothVersions(file));
                    if (STORAGE_TEST.matcher(file.toString()).matches()) {
                        ofStorages.put(name, onBothVersions(file));
                    }
                });
            }
        }

        assertThat(ofStorages).isNotEmpty();
        assertThat(listed).containsAllEntriesOf(ofStorages);
        assertThat(runs).containsAllEntriesOf(listed);
    }

    private static boolean onBothVersions(Path test) {
        try {
            return Files.readString(test).contains("@Tag(\"redis-7\")");
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
