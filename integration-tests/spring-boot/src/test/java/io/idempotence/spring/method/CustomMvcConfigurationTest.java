package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.Idempotent;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.http.HttpStatus;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.servlet.config.annotation.WebMvcConfigurationSupport;
import org.springframework.web.servlet.function.RouterFunction;
import org.springframework.web.servlet.function.RouterFunctions;
import org.springframework.web.servlet.function.ServerResponse;

/** Handlers in an application that configures Spring MVC itself, so that no {@code WebMvcConfigurer} counts. */
@Tag("all")
@Timeout(180)
class CustomMvcConfigurationTest {
    private static TestServer server;

    private final String id = UUID.randomUUID().toString();

    @BeforeAll
    static void start() {
        server = TestServer.start(Application.class);
    }

    @AfterAll
    static void stop() {
        server.close();
    }

    @Configuration(proxyBeanMethods = false)
    @Import(Handlers.class)
    static class Application extends WebMvcConfigurationSupport {
        @Bean
        RouterFunction<ServerResponse> routes(Handlers handlers) {
            return RouterFunctions.route()
                    .POST("/functional", request -> ServerResponse.async(handlers.future()))
                    .build();
        }
    }

    @ResponseStatus(HttpStatus.CONFLICT)
    static class BusyException extends RuntimeException {}

    @RestController
    static class Handlers {
        private final TransactionTemplate transaction;

        Handlers(PlatformTransactionManager transactions) {
            this.transaction = new TransactionTemplate(transactions);
        }

        private String commitAndFail() {
            transaction.executeWithoutResult(status -> {});
            throw new IllegalStateException("after the commit");
        }

        @PostMapping("/callable")
        @Idempotent
        Callable<String> callable() {
            return this::commitAndFail;
        }

        @PostMapping("/future")
        @Idempotent
        CompletableFuture<String> future() {
            return CompletableFuture.supplyAsync(this::commitAndFail);
        }

        @PostMapping("/busy")
        @Idempotent(releaseOn = BusyException.class)
        String busy() {
            throw new BusyException();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"/callable", "/future", "/functional"})
    @DisplayName("P6: a failure after a commit does not release the ID, whoever configures Spring MVC")
    void aFailureAfterACommitDoesNotReleaseTheId(String path) {
        server.assertUnknownAfterAFailure(path, id);
    }

    @Test
    void anExceptionDecidesAlsoIfItIsRendered() {
        for (int i = 0; i < 2; i++) {
            TestServer.Response response = server.post("/busy", id);
            assertThat(response.status()).isEqualTo(409);
            assertThat(response.isReplayed()).as("it runs again").isFalse();
        }
    }
}
