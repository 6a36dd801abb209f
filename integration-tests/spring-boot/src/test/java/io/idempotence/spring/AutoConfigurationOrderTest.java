package io.idempotence.spring;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.function.Predicate;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.context.annotation.Configurations;
import org.springframework.boot.context.annotation.ImportCandidates;
import org.springframework.util.ClassUtils;

/** The place of the starter among the auto-configurations of an application. */
class AutoConfigurationOrderTest {
    private static final Predicate<String> OURS = name -> name.startsWith("io.idempotence.");

    /** In the order in which they apply. */
    private static List<String> ordered(Predicate<String> which) {
        ClassLoader loader = AutoConfigurationOrderTest.class.getClassLoader();
        Class<?>[] all = ImportCandidates.load(AutoConfiguration.class, loader).getCandidates().stream()
                .filter(which)
                .map(name -> ClassUtils.resolveClassName(name, loader))
                .toArray(Class<?>[]::new);
        return List.of(Configurations.getClasses(AutoConfigurations.of(all))).stream()
                .map(Class::getName)
                .toList();
    }

    /** Many have conditions on beans, which another order would change: OpenFeign would lose its OAuth 2 tokens. */
    @Test
    void starterDoesNotChangeTheOrderOfOthers() {
        List<String> with = ordered(name -> true);

        assertThat(with).anyMatch(OURS);
        assertThat(with.stream().filter(OURS.negate())).containsExactlyElementsOf(ordered(OURS.negate()));
    }
}
