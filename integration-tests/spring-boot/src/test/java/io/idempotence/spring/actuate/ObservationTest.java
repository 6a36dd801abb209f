package io.idempotence.spring.actuate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.InstanceOfAssertFactories.STRING;
import static org.awaitility.Awaitility.await;

import io.idempotence.IdempotenceId;
import io.idempotence.server.Idempotence;
import io.micrometer.common.KeyValue;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationHandler;
import io.micrometer.observation.ObservationRegistry;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.MDC;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.logging.LoggingSystem;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.core.task.TaskDecorator;
import org.springframework.core.task.support.ContextPropagatingTaskDecorator;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;

/** Tests of what traces and log lines show of the provider. */
@ExtendWith(OutputCaptureExtension.class)
class ObservationTest {
    private static ConfigurableApplicationContext application;

    @SpringBootConfiguration
    @EnableAutoConfiguration
    static class Application {
        final List<Observation.Context> attempts = new CopyOnWriteArrayList<>();
        final List<Observation.Context> ofHandlers = new CopyOnWriteArrayList<>();
        /** What happens to observed attempts, in order. */
        final List<String> scopes = new CopyOnWriteArrayList<>();

        @Bean
        ObservationHandler<Observation.Context> handler() {
            return new ObservationHandler<>() {
                @Override
                public void onScopeOpened(Observation.Context context) {
                    scopes.add("opened");
                }

                @Override
                public void onScopeClosed(Observation.Context context) {
                    scopes.add("closed");
                }

                @Override
                public void onStop(Observation.Context context) {
                    attempts.add(context);
                    scopes.add("stopped");
                }

                @Override
                public boolean supportsContext(Observation.Context context) {
                    return ServerObservations.NAME.equals(context.getName());
                }
            };
        }

        @Bean
        ObservationHandler<Observation.Context> ofHandlers() {
            return new ObservationHandler<>() {
                @Override
                public void onStop(Observation.Context context) {
                    ofHandlers.add(context);
                }

                @Override
                public boolean supportsContext(Observation.Context context) {
                    return "booking".equals(context.getName());
                }
            };
        }

        @Bean
        SecurityFilterChain open(HttpSecurity security) throws Exception {
            return security.csrf(csrf -> csrf.disable())
                    .authorizeHttpRequests(requests -> requests.anyRequest().permitAll())
                    .build();
        }

        @RestController
        static class Payments {
            private static final Logger LOG = LoggerFactory.getLogger(Payments.class);
            private final ObservationRegistry registry;

            Payments(ObservationRegistry registry) {
                this.registry = registry;
            }

            @PostMapping("/payments")
            String pay() {
                MDC.put("traceId", "80f198ee56343ba864fe8b2a57d3eff7");
                LOG.info("booking");
                MDC.remove("traceId");
                return "booked " + MDC.get("idempotenceId");
            }

            @PostMapping("/observed/now")
            String now() {
                return book();
            }

            @PostMapping("/observed/callable")
            Callable<String> callable() {
                return () -> book();
            }

            @PostMapping("/observed/future")
            CompletableFuture<String> future() {
                book();
                return CompletableFuture.supplyAsync(() -> "booked");
            }

            @PostMapping("/observed/failing")
            String failing() {
                book();
                throw new IllegalStateException("no connection");
            }

            String book() {
                return Observation.createNotStarted("booking", registry).observe(() -> "booked");
            }

            @PostMapping("/later")
            CompletableFuture<String> later() {
                return CompletableFuture.supplyAsync(() -> "booked");
            }
        }
    }

    @BeforeAll
    static void start() {
        // An application that another test left running keeps Spring Boot from reading the pattern again.
        LoggingSystem.get(ObservationTest.class.getClassLoader()).cleanUp();
        System.clearProperty("LOG_CORRELATION_PATTERN");
        application = new SpringApplicationBuilder(Application.class)
                .properties(
                        "server.port=0",
                        "server.address=localhost",
                        "idempotence.server.storage=memory",
                        "logging.pattern.correlation=%correlationId{traceId(32),spanId(16),idempotenceId(36)}",
                        "spring.main.banner-mode=off")
                .run();
    }

    @AfterAll
    static void stop() {
        application.close();
    }

    private static String post(String path, String id) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(
                        "http://localhost:" + application.getEnvironment().getProperty("local.server.port") + path))
                .POST(HttpRequest.BodyPublishers.noBody())
                .header("Idempotency-Key", id)
                .build();
        return HttpClient.newHttpClient()
                .send(request, HttpResponse.BodyHandlers.ofString())
                .body();
    }

    @Test
    void eachAttemptIsObservedWithinItsRequestAndWithoutItsId() throws Exception {
        List<Observation.Context> attempts = application.getBean(Application.class).attempts;
        attempts.clear();
        assertThat(post("/payments", "payment-1")).isEqualTo("booked payment-1");
        post("/payments", "payment-1");
        post("/later", "payment-1");

        assertThat(attempts.stream().map(ObservationTest::tags))
                .containsExactly(
                        List.of("detail=kept", "outcome=run"),
                        List.of("detail=none", "outcome=replay"),
                        List.of("detail=key-reused", "outcome=refuse"));
        assertThat(attempts).allSatisfy(attempt -> {
            assertThat(attempt.getHighCardinalityKeyValue("idempotence.key").getValue())
                    .isEqualTo(IdempotenceKeys.of(application.getBean(Idempotence.class), "payment-1"));
            assertThat(attempt.getAllKeyValues().stream().map(KeyValue::getValue))
                    .noneMatch(v -> v.contains("payment-1"));
            assertThat(outermost(attempt).getName()).isEqualTo("http.server.requests");
        });
    }

    @Test
    void anAsynchronousHandlerIsObservedToItsEnd() throws Exception {
        List<Observation.Context> attempts = application.getBean(Application.class).attempts;
        attempts.clear();
        post("/later", "payment-2");

        assertThat(attempts.stream().map(ObservationTest::tags)).containsExactly(List.of("detail=kept", "outcome=run"));
        assertThat(application
                        .getBean(MeterRegistry.class)
                        .get(ServerObservations.NAME)
                        .tag("outcome", "run")
                        .timers())
                .isNotEmpty();
    }

    @ParameterizedTest
    @ValueSource(strings = {"now", "callable", "future", "failing"})
    void whatAHandlerObservesIsWithinItsAttempt(String handler) throws Exception {
        Application observed = application.getBean(Application.class);
        observed.attempts.clear();
        observed.ofHandlers.clear();
        observed.scopes.clear();
        post("/observed/" + handler, "payment-of-" + handler);

        await().until(() -> !observed.attempts.isEmpty());
        assertThat(observed.ofHandlers)
                .singleElement()
                .satisfies(booking -> assertThat(booking.getParentObservation().getContextView())
                        .isSameAs(observed.attempts.get(0)));
        assertThat(Collections.frequency(observed.scopes, "opened"))
                .isPositive()
                .isEqualTo(Collections.frequency(observed.scopes, "closed"));
        assertThat(observed.scopes.get(observed.scopes.size() - 1)).isEqualTo("stopped");
    }

    @Test
    void whatABeanMethodObservesIsWithinItsAttempt() throws Exception {
        Application observed = application.getBean(Application.class);
        observed.attempts.clear();
        observed.ofHandlers.clear();
        application
                .getBean(Idempotence.class)
                .execute(IdempotenceId.of("delivery-1"), application.getBean(Application.Payments.class)::book);

        assertThat(observed.ofHandlers.get(0).getParentObservation().getContextView())
                .isSameAs(observed.attempts.get(0));
        assertThat(application.getBean(ObservationRegistry.class).getCurrentObservation())
                .isNull();
    }

    @Test
    void theDocumentedPatternShowsTheIdBesideTraceAndSpan(CapturedOutput output) throws Exception {
        post("/payments", "7c1f0f0e-2f0e-4a3a-9a43-3d1c6ab7a1f5");

        assertThat(output.getOut().lines().filter(line -> line.endsWith("booking")))
                .singleElement(STRING)
                .contains("[80f198ee56343ba864fe8b2a57d3eff7-                -7c1f0f0e-2f0e-4a3a-9a43-3d1c6ab7a1f5] ");
    }

    @Test
    void theIdGoesWithTheWorkThatSpringCarriesToAnotherThread() throws Exception {
        TaskDecorator carrying = new ContextPropagatingTaskDecorator();
        List<String> seen = new CopyOnWriteArrayList<>();
        Runnable work = () -> seen.add(String.valueOf(MDC.get("idempotenceId")));
        MDC.put("idempotenceId", "payment-1");
        Thread with = new Thread(carrying.decorate(work), "carried");
        MDC.remove("idempotenceId");
        Thread without = new Thread(carrying.decorate(work), "not carried");
        with.start();
        with.join();
        without.start();
        without.join();

        assertThat(seen).containsExactly("payment-1", "null");
    }

    private static Observation.ContextView outermost(Observation.ContextView context) {
        return context.getParentObservation() == null
                ? context
                : outermost(context.getParentObservation().getContextView());
    }

    private static List<String> tags(Observation.Context context) {
        return context.getLowCardinalityKeyValues().stream()
                .map(tag -> tag.getKey() + "=" + tag.getValue())
                .toList();
    }
}
