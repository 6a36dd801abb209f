package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.Idempotent;
import io.idempotence.OnAbandoned;
import io.idempotence.server.storage.IdempotenceStorage;
import io.idempotence.spring.FailingStart;
import io.idempotence.spring.server.IdempotenceServerAutoConfiguration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.springframework.boot.LazyInitializationBeanFactoryPostProcessor;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.context.runner.WebApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.server.WebHandler;
import org.springframework.web.servlet.config.annotation.EnableWebMvc;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** An {@code @Idempotent} that cannot work fails the start, with Spring Boot's description and action. */
@ExtendWith(OutputCaptureExtension.class)
class MisusedAnnotationsTest {
    static WebApplicationContextRunner application() {
        return new WebApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(
                        IdempotenceServerAutoConfiguration.class, IdempotenceMethodAutoConfiguration.class))
                .withUserConfiguration(Web.class, TestJson.class)
                .withPropertyValues("lease=30");
    }

    @Configuration(proxyBeanMethods = false)
    @EnableWebMvc
    static class Web {
        @Bean
        IdempotenceStorage storage() {
            return IdempotenceStorage.inMemory();
        }
    }

    @Configuration(proxyBeanMethods = false)
    @ImportAutoConfiguration({IdempotenceServerAutoConfiguration.class, IdempotenceMethodAutoConfiguration.class})
    @Import(TestJson.class)
    static class Application extends Web {}

    private static String reportOf(CapturedOutput output, Class<?>... misused) {
        return FailingStart.report(
                output,
                Stream.concat(Stream.of(misused), Stream.of(Application.class)).toArray(Class<?>[]::new),
                "--lease=30",
                List.of(misused).contains(Misuses.NotCovered.class)
                        ? "--idempotence.server.paths=/payments/*"
                        : "--a=b");
    }

    @ParameterizedTest
    @MethodSource("io.idempotence.spring.method.Misuses#all")
    void aMisuseFailsTheStart(Class<?> misused, String description, String action, CapturedOutput output) {
        String[] report = reportOf(output, misused).split("Action:");
        assertThat(report[0]).contains("@Idempotent cannot work as it is used:").contains(description);
        assertThat(report[1]).contains(action);
    }

    @Test
    void allMistakesAreReportedAtOnce(CapturedOutput output) {
        assertThat(reportOf(output, Misuses.ReadOnly.class, Misuses.Both.class, Misuses.WrongName.class))
                .contains("ReadOnly.list", "Both.create", "WrongName.create");
    }

    /** Spring MVC collects their values, and sends them as a whole. */
    @RestController
    static class Collected {
        @Idempotent
        @PostMapping("/orders")
        Flux<Integer> create() {
            return Flux.just(1);
        }

        @Idempotent
        @PostMapping(
                path = "/either",
                produces = {"application/json", "text/event-stream"})
        Flux<Integer> createEither() {
            return Flux.just(1);
        }

        @Idempotent
        @PostMapping("/more")
        <T extends Comparable<T>> CompletableFuture<Map<String, T>> createMore() {
            return new CompletableFuture<>();
        }
    }

    @Test
    void aReactiveResultThatIsSentAsAWholeIsNoMistake() {
        application()
                .withUserConfiguration(Collected.class)
                .run(context -> assertThat(context).hasNotFailed());
    }

    /** The annotation of a shared interface is that of the client. */
    interface Client {
        @Idempotent
        @PostMapping("/orders")
        String create();
    }

    static class Fallback implements Client {
        @Override
        public String create() {
            return "";
        }
    }

    @Test
    void theFallbackOfAClientIsNoMistake() {
        application()
                .withUserConfiguration(Fallback.class)
                .run(context -> assertThat(context).hasNotFailed());
    }

    @RestController
    static class RunsAgain {
        @Idempotent(onAbandoned = OnAbandoned.RE_EXECUTE)
        @PostMapping("/orders")
        String create() {
            return "";
        }
    }

    @Test
    void anOperationThatMayRunAgainIsCompletedBeforeItsResponseWhateverTheProperty() {
        application()
                .withUserConfiguration(RunsAgain.class)
                .withPropertyValues("idempotence.server.policy.completion=after-response")
                .run(context -> assertThat(context).hasNotFailed());
    }

    @RestController
    static class Lazily {
        @Idempotent
        @PostMapping("/orders")
        String create() {
            return "";
        }
    }

    @Test
    void aHandlerThatIsCreatedLateIsNoMistake() {
        application()
                .withInitializer(context ->
                        context.addBeanFactoryPostProcessor(new LazyInitializationBeanFactoryPostProcessor()))
                .withUserConfiguration(Lazily.class)
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    assertThat(context.getBean(Lazily.class)).isNotNull();
                    assertThat(context.getBean(IdempotentOperations.class).all())
                            .hasSize(1);
                });
    }

    @Test
    void aMistakeInABeanThatIsCreatedLateFailsItsCreation() {
        application()
                .withInitializer(context ->
                        context.addBeanFactoryPostProcessor(new LazyInitializationBeanFactoryPostProcessor()))
                .withUserConfiguration(Misuses.WrongName.class)
                .run(context -> assertThatThrownBy(() -> context.getBean(Misuses.WrongName.class))
                        .hasRootCauseInstanceOf(OperationFaultsException.class));
    }

    /** It ran unprotected, without a word. */
    @Test
    void aHandlerOfWebFluxFailsTheStart() {
        new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(
                        IdempotenceServerAutoConfiguration.class, IdempotenceMethodAutoConfiguration.class))
                .withUserConfiguration(Lazily.class)
                .withPropertyValues("idempotence.server.storage=memory")
                .withBean("webHandler", WebHandler.class, () -> exchange -> Mono.empty())
                .run(context -> assertThat(context.getStartupFailure())
                        .isInstanceOf(OperationFaultsException.class)
                        .hasMessageContaining("Lazily.create: WebFlux has no idempotence filter"));
    }
}
