package io.idempotence.client.feign;

import static org.assertj.core.api.Assertions.assertThat;

import feign.Feign;
import io.github.resilience4j.retry.Retry;
import org.junit.jupiter.api.Test;

/**
 * The library versions of a run. The tests run twice, on the versions of the build and on the oldest supported ones, and this test proves
 * it.
 */
class VersionsTest {
    @Test
    void versionsOnTheClasspathAreThoseOfTheRun() {
        assertThat(jar(Feign.class)).endsWith("-" + System.getProperty("idempotence.test.feign") + ".jar");
        assertThat(jar(Retry.class)).endsWith("-" + System.getProperty("idempotence.test.resilience4j") + ".jar");
    }

    private static String jar(Class<?> type) {
        return type.getProtectionDomain().getCodeSource().getLocation().getPath();
    }
}
