package io.idempotence.client.feign;

import static org.assertj.core.api.Assertions.assertThat;

import feign.Feign;
import io.github.resilience4j.retry.Retry;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/** These tests run twice: on the versions that the build uses, and on the oldest that are supported. Proves that it is so. */
class VersionsTest {
    @Test
    void versionsOnTheClasspathAreThoseOfTheRun() {
        String location = Feign.class.getProtectionDomain().getCodeSource().getLocation() + " "
                + Retry.class.getProtectionDomain().getCodeSource().getLocation();
        boolean oldest = Optional.ofNullable(System.getProperty("idempotence.test.feign"))
                .isPresent();
        assertThat(location.contains("13.6.1") && location.contains("2.3.0")).isEqualTo(oldest);
    }
}
