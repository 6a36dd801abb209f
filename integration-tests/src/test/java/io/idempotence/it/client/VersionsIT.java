package io.idempotence.it.client;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Optional;
import okhttp3.OkHttpClient;
import okio.Buffer;
import org.junit.jupiter.api.Test;

/** The tests of the client half run on the versions of the build, and on the oldest that are supported. Proves that it is so for OkHttp. */
class VersionsIT {
    @Test
    void versionOfOkHttpOnTheClasspathIsThatOfTheRun() {
        String oldest = Optional.ofNullable(System.getProperty("idempotence.test.okhttp"))
                .orElse("");
        assertThat(location(OkHttpClient.class)).contains(oldest.isEmpty() ? "okhttp-jvm-5." : "okhttp-" + oldest);
        assertThat(location(Buffer.class).contains("okio-jvm-3.6.0")).isEqualTo(!oldest.isEmpty());
    }

    private static String location(Class<?> type) {
        return type.getProtectionDomain().getCodeSource().getLocation().toString();
    }
}
