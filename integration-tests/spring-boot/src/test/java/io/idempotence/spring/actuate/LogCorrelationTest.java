package io.idempotence.spring.actuate;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.slf4j.LoggerFactory;
import org.slf4j.MDC;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.logging.LoggingSystem;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;

/** The ID of a call is in the lines of Spring Boot's own log pattern. */
@ExtendWith(OutputCaptureExtension.class)
class LogCorrelationTest {
    private static final String TRACE = "0123456789abcdef0123456789abcdef";
    private static final String SPAN = "0123456789abcdef";

    @BeforeEach
    @AfterEach
    void startWithoutAnyPattern() {
        System.clearProperty("LOG_CORRELATION_PATTERN");
        LoggingSystem.get(getClass().getClassLoader()).cleanUp();
        MDC.clear();
    }

    @Test
    void theIdIsBetweenThreadAndLogger(CapturedOutput output) {
        assertThat(logged(output, "order-1")).contains("] [order-1] orders ");
    }

    @Test
    void aLineWithoutAnIdIsAsItWas(CapturedOutput output) {
        assertThat(logged(output, null, "--spring.application.name=shop"))
                .containsPattern("--- \\[shop] \\[ *\\S+] orders ");
    }

    @Test
    void traceAndSpanStay(CapturedOutput output) {
        MDC.put("traceId", TRACE);
        MDC.put("spanId", SPAN);
        assertThat(logged(output, "order-1", "--logging.expect-correlation-id=true"))
                .contains("] [" + TRACE + "-" + SPAN + "] [order-1] orders ");
    }

    @Test
    void theApplicationsOwnPatternIsUsed(CapturedOutput output) {
        assertThat(logged(output, "order-1", "--logging.pattern.correlation=<%X{idempotenceId}> "))
                .contains("] <order-1> orders ");
    }

    @Test
    void aPropertySwitchesItOff(CapturedOutput output) {
        MDC.put("traceId", TRACE);
        MDC.put("spanId", SPAN);
        assertThat(logged(output, "order-1", "--idempotence.log-correlation=false"))
                .doesNotContain("order-1");
        startWithoutAnyPattern();
        MDC.put("traceId", TRACE);
        MDC.put("spanId", SPAN);
        assertThat(logged(
                        output,
                        "order-1",
                        "--idempotence.log-correlation=false",
                        "--logging.expect-correlation-id=true"))
                .contains("] [" + TRACE + "-" + SPAN + "] orders ");
    }

    private static String logged(CapturedOutput output, String id, String... arguments) {
        try (ConfigurableApplicationContext application = new SpringApplicationBuilder(Nothing.class)
                .web(WebApplicationType.NONE)
                .run(arguments)) {
            if (id != null) {
                MDC.put("idempotenceId", id);
            }
            LoggerFactory.getLogger("orders").info("booked by {}", application.getId());
        }
        return output.toString()
                .lines()
                .filter(line -> line.contains("booked by"))
                .reduce("", (first, last) -> last);
    }

    @Configuration(proxyBeanMethods = false)
    static class Nothing {}
}
