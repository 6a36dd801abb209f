package io.idempotence.it.architecture;

import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.domain.JavaModifier;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** docs/storage-tests.md says which storage is tested by what: all that there is, and nothing else. */
@AnalyzeClasses(packages = {"io.idempotence.server", "io.idempotence.it"})
class StorageTestsListTest {
    private static final Pattern LISTED = Pattern.compile("`(\\w+(?:Test|IT))`( \\(7\\))?");

    @ArchTest
    static void theListIsWhatRuns(JavaClasses all) throws IOException {
        Map<String, Boolean> runs = all.stream()
                .filter(type -> type.getSimpleName().matches("\\w+(Test|IT)"))
                .filter(type -> !type.getModifiers().contains(JavaModifier.ABSTRACT))
                .collect(Collectors.toMap(
                        JavaClass::getSimpleName, StorageTestsListTest::onBothVersions, (a, b) -> a || b));
        Map<String, Boolean> listed = new TreeMap<>();
        LISTED.matcher(Files.readString(Path.of("../docs/storage-tests.md")).replaceAll("(?m)^[^|].*$", ""))
                .results()
                .forEach(each -> listed.merge(each.group(1), each.group(2) != null, (a, b) -> a && b));

        assertThat(runs).containsAllEntriesOf(listed);
        assertThat(listed.keySet())
                .containsAll(all.stream()
                        .filter(type -> runs.containsKey(type.getSimpleName()))
                        .filter(type -> type.getPackageName()
                                .matches("io\\.idempotence\\.(server\\.(storage|redis|jdbc)|it\\.fault)"))
                        .map(JavaClass::getSimpleName)
                        .toList());
    }

    private static boolean onBothVersions(JavaClass test) {
        return test.getAnnotations().stream()
                .anyMatch(each -> each.getRawType().getSimpleName().equals("Tag")
                        && each.get("value").filter("redis-7"::equals).isPresent());
    }
}
