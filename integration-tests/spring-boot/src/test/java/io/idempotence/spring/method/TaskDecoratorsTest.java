package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.Idempotent;
import io.idempotence.server.ExecutionRefusedException;
import io.idempotence.server.IdempotentExecution;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.slf4j.MDC;
import org.springframework.boot.SpringBootVersion;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.core.task.AsyncTaskExecutor;
import org.springframework.core.task.TaskDecorator;
import org.springframework.core.task.support.ContextPropagatingTaskDecorator;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/** Commits on an executor of Spring Boot, to which one or several task decorators carry executions. */
@Tag("all")
@Timeout(180)
@ExtendWith(OutputCaptureExtension.class)
class TaskDecoratorsTest {
    private static final String WARNING = "applies none of the task decorators [executions, logs]";

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import(Bookings.class)
    static class Application {}

    static class Bookings {
        private final TransactionTemplate transaction;
        private final AsyncTaskExecutor executor;

        Bookings(PlatformTransactionManager transactions, AsyncTaskExecutor applicationTaskExecutor) {
            transaction = new TransactionTemplate(transactions);
            executor = applicationTaskExecutor;
        }

        @Idempotent(id = "#id")
        public void bookAndFail(String id) throws InterruptedException, ExecutionException {
            Future<String> logged = executor.submit(() -> {
                transaction.executeWithoutResult(status -> {});
                return MDC.get("idempotenceId");
            });
            assertThat(logged.get()).isEqualTo(id);
            throw new IllegalStateException("after the commit");
        }
    }

    /** As the documentation says. */
    @Configuration(proxyBeanMethods = false)
    static class OneForBoth {
        @Bean
        TaskDecorator executions() {
            ContextPropagatingTaskDecorator context = new ContextPropagatingTaskDecorator();
            return task -> context.decorate(IdempotentExecution.carried(task));
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class OneForEach {
        @Bean
        TaskDecorator executions() {
            return IdempotentExecution::carried;
        }

        @Bean
        ContextPropagatingTaskDecorator logs() {
            return new ContextPropagatingTaskDecorator();
        }
    }

    private static ConfigurableApplicationContext start(Class<?> decorators) {
        return new SpringApplicationBuilder(Application.class, decorators)
                .web(WebApplicationType.NONE)
                .properties("spring.main.banner-mode=off", "idempotence.server.storage=memory")
                .run();
    }

    private static void assertCommitIsSeen(ConfigurableApplicationContext application) {
        Bookings bookings = application.getBean(Bookings.class);
        assertThatThrownBy(() -> bookings.bookAndFail("order-1")).hasMessage("after the commit");
        assertThatThrownBy(() -> bookings.bookAndFail("order-1"))
                .isInstanceOf(ExecutionRefusedException.class)
                .hasMessageContaining("outcome-unknown");
    }

    @Test
    @DisplayName("P6: a failure after a commit on an executor does not release the ID")
    void oneDecoratorForExecutionsAndLogs(CapturedOutput output) {
        try (ConfigurableApplicationContext application = start(OneForBoth.class)) {
            assertCommitIsSeen(application);
            assertThat(output).doesNotContain("task decorators");
        }
    }

    /** Boot 3 applied none of them, and nothing said so. */
    @Test
    void severalDecoratorsAreAppliedOrAWarningListsThem(CapturedOutput output) {
        try (ConfigurableApplicationContext application = start(OneForEach.class)) {
            if (SpringBootVersion.getVersion().startsWith("3.")) {
                assertThat(output).contains(WARNING);
            } else {
                assertCommitIsSeen(application);
                assertThat(output).doesNotContain("task decorators");
            }
        }
    }
}
