package io.idempotence.client.feign;

import static org.assertj.core.api.Assertions.assertThat;

import feign.Feign;
import io.github.resilience4j.retry.Retry;
import org.junit.jupiter.api.Test;

/** These tests run twice: on the versions that the build uses, and on the oldest that are supported. Proves that it is so. */
class VersionsTest {
    private static final String NEWEST = "the newest";

    @Test
    void versionsOnTheClasspathAreThoseOfTheRun() {
        String feign = System.getProperty("idempotence.test.feign", NEWEST);
        String resilience4j = System.getProperty("idempotence.test.resilience4j", NEWEST);
        assertThat(jar(Feign.class)).matches(jar -> feign.equals(NEWEST) || jar.endsWith("-" + feign + ".jar"), feign);
        assertThat(jar(Retry.class))
                .matches(jar -> resilience4j.equals(NEWEST) || jar.endsWith("-" + resilience4j + ".jar"), resilience4j);
    }

    private static String jar(Class<?> type) {
        return type.getProtectionDomain().getCodeSource().getLocation().getPath();
    }
}
