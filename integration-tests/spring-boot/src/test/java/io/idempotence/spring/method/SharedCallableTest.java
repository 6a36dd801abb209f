package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.Idempotent;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.context.annotation.Import;
import org.springframework.scheduling.concurrent.ThreadPoolTaskExecutor;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;

/** A handler may return the same {@code Callable} to several requests. */
@Timeout(180)
class SharedCallableTest {
    private static TestServer server;

    @BeforeAll
    static void start() {
        server = TestServer.start(
                Application.class,
                "--spring.task.execution.pool.core-size=1",
                "--spring.task.execution.pool.max-size=1");
    }

    @AfterAll
    static void stop() {
        server.close();
    }

    @Import(Handler.class)
    static class Application {}

    @RestController
    static class Handler {
        private final AtomicInteger runs = new AtomicInteger();
        private final Callable<String> shared;

        Handler(PlatformTransactionManager transactions) {
            TransactionTemplate transaction = new TransactionTemplate(transactions);
            this.shared = () -> {
                transaction.executeWithoutResult(status -> runs.incrementAndGet());
                throw new IllegalStateException("after the commit");
            };
        }

        @PostMapping("/shared")
        @Idempotent
        Callable<String> shared() {
            return shared;
        }
    }

    @Test
    @DisplayName("P6: a failure after a commit does not release the ID, also of requests that share a task")
    void aFailureAfterACommitDoesNotReleaseTheId() {
        String one = UUID.randomUUID().toString();
        String other = UUID.randomUUID().toString();
        ThreadPoolTaskExecutor executor =
                server.context().getBean("applicationTaskExecutor", ThreadPoolTaskExecutor.class);
        CountDownLatch bothWait = new CountDownLatch(1);
        executor.execute(() -> {
            try {
                bothWait.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        });
        CompletableFuture<TestServer.Response> first = server.postAsync("/shared", one);
        await().until(() -> executor.getQueueSize() == 1);
        CompletableFuture<TestServer.Response> second = server.postAsync("/shared", other);
        await().until(() -> executor.getQueueSize() == 2);
        bothWait.countDown();
        assertThat(first.join().status()).isEqualTo(500);
        assertThat(second.join().status()).isEqualTo(500);

        assertThat(server.post("/shared", one).refusal()).isEqualTo("outcome-unknown");
        assertThat(server.post("/shared", other).refusal()).isEqualTo("outcome-unknown");
        assertThat(server.bean(Handler.class).runs).hasValue(2);
    }
}
