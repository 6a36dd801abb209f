package io.idempotence.it.client;

import static org.assertj.core.api.Assertions.assertThat;

import feign.Feign;
import feign.jackson.JacksonDecoder;
import io.github.resilience4j.bulkhead.Bulkhead;
import io.github.resilience4j.circuitbreaker.CircuitBreaker;
import io.github.resilience4j.core.IntervalFunction;
import io.github.resilience4j.ratelimiter.RateLimiter;
import io.github.resilience4j.retry.Retry;
import java.nio.file.Path;
import okhttp3.OkHttpClient;
import okio.Buffer;
import org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The library versions of a run. The tests of the client half run on the versions of the build and on the oldest supported ones, and this
 * test proves it. Maven passes the versions.
 */
class VersionsIT {
    private static final String FEIGN = System.getProperty("idempotence.test.feign");
    private static final String RESILIENCE4J = System.getProperty("idempotence.test.resilience4j");
    private static final String HTTPCLIENT5 = System.getProperty("idempotence.test.httpclient5");
    private static final String OKHTTP = System.getProperty("idempotence.test.okhttp");

    @ParameterizedTest
    @ValueSource(classes = {Feign.class, JacksonDecoder.class})
    void versionOfFeignIsThatOfTheRun(Class<?> type) {
        assertThat(jar(type)).endsWith("-" + FEIGN + ".jar");
    }

    @ParameterizedTest
    @ValueSource(
            classes = {Retry.class, IntervalFunction.class, CircuitBreaker.class, Bulkhead.class, RateLimiter.class})
    void versionOfResilience4jIsThatOfTheRun(Class<?> type) {
        assertThat(jar(type)).endsWith("-" + RESILIENCE4J + ".jar");
    }

    @Test
    void versionOfOkHttpIsThatOfTheRun() {
        assertThat(jar(OkHttpClient.class)).endsWith("-" + OKHTTP + ".jar");
        assertThat(jar(Buffer.class).equals("okio-jvm-3.6.0.jar")).isEqualTo(OKHTTP.startsWith("4."));
    }

    @Test
    void versionOfApacheHttpClientIsThatOfTheRun() {
        assertThat(jar(CloseableHttpClient.class)).isEqualTo("httpclient5-" + HTTPCLIENT5 + ".jar");
    }

    private static String jar(Class<?> type) {
        return Path.of(type.getProtectionDomain().getCodeSource().getLocation().getPath())
                .getFileName()
                .toString();
    }
}
