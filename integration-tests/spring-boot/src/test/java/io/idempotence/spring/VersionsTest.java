package io.idempotence.spring;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.springframework.boot.SpringBootVersion;

/** The shared tests run once for each version of Spring Boot. */
class VersionsTest {
    @Test
    void runsOnASupportedSpringBoot() {
        assertThat(SpringBootVersion.getVersion()).matches("3\\.5\\..*|4\\.[01]\\..*");
    }
}
