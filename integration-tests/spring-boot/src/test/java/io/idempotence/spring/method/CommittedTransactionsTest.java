package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.zaxxer.hikari.HikariDataSource;
import io.idempotence.FailureRule;
import io.idempotence.Idempotent;
import io.idempotence.server.ExecutionRefusedException;
import io.idempotence.server.IdempotentExecution;
import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import java.io.IOException;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.context.annotation.Primary;
import org.springframework.core.task.SimpleAsyncTaskExecutor;
import org.springframework.core.task.TaskDecorator;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.scheduling.annotation.Async;
import org.springframework.scheduling.annotation.EnableAsync;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;
import org.springframework.transaction.support.TransactionTemplate;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.context.request.async.DeferredResult;

/** Nothing is released after a commit: real databases, real HTTP. */
@Timeout(60)
class CommittedTransactionsTest {
    private static EmbeddedPostgres postgres;
    private static TestServer server;

    private final String id = UUID.randomUUID().toString();

    @BeforeAll
    static void start() throws IOException {
        postgres = EmbeddedPostgres.start();
        server = TestServer.start(Application.class);
    }

    @AfterAll
    static void stop() throws IOException {
        server.close();
        postgres.close();
    }

    private static HikariDataSource pool(String url, String user) {
        HikariDataSource pool = new HikariDataSource();
        pool.setJdbcUrl(url);
        pool.setUsername(user);
        pool.setConnectionTimeout(2_000);
        JdbcTemplate jdbc = new JdbcTemplate(pool);
        jdbc.execute("create table effect (id varchar(100) not null, what varchar(100))");
        jdbc.execute("create table single (id varchar(100) primary key)");
        if (url.contains("postgresql")) {
            jdbc.execute(
                    "create table late (id varchar(100), constraint late_once unique (id) deferrable initially deferred)");
        }
        return pool;
    }

    @Import({Handlers.class, OuterService.class, InnerService.class, AsyncService.class})
    @EnableAsync
    static class Application {
        /** An executor that does not carry executions, as {@code @Async} and futures have without a decorator. */
        @Bean(defaultCandidate = false)
        SimpleAsyncTaskExecutor plain() {
            return new SimpleAsyncTaskExecutor("plain-");
        }

        /** Puts the tasks of the application's executor into the executions of those who submit them. */
        @Bean
        TaskDecorator executions() {
            return IdempotentExecution::carried;
        }

        @Bean
        @Primary
        DataSource h2() {
            return pool("jdbc:h2:mem:" + UUID.randomUUID(), "sa");
        }

        @Bean
        DataSource pg() {
            return pool(postgres.getJdbcUrl("postgres", "postgres"), "postgres");
        }

        @Bean
        @Primary
        PlatformTransactionManager h2Transactions(DataSource h2) {
            return new JdbcTransactionManager(h2);
        }

        @Bean
        PlatformTransactionManager pgTransactions(@Qualifier("pg") DataSource pg) {
            return new DataSourceTransactionManager(pg);
        }
    }

    static class BrokenResult {
        public String getName() {
            throw new IllegalStateException("cannot be serialised");
        }
    }

    static class InnerService {
        private final Map<String, JdbcTemplate> databases;

        InnerService(DataSource h2, @Qualifier("pg") DataSource pg) {
            databases = Map.of("h2", new JdbcTemplate(h2), "pg", new JdbcTemplate(pg));
        }

        JdbcTemplate in(String database) {
            return databases.get(database);
        }

        int effects(String database, String id) {
            return in(database).queryForObject("select count(*) from effect where id = ?", Integer.class, id);
        }

        @Idempotent(id = "#id")
        public int once(String id) {
            in("h2").update("insert into effect values (?, 'once')", id);
            return effects("h2", id);
        }

        @Idempotent(id = "#id")
        public CompletableFuture<Integer> onceInFuture(String id) {
            in("h2").update("insert into effect values (?, 'once')", id);
            return CompletableFuture.completedFuture(effects("h2", id));
        }
    }

    static class OuterService {
        private final InnerService inner;

        OuterService(InnerService inner) {
            this.inner = inner;
        }

        /** Waits for the future before it commits. */
        @Transactional
        public int futureInMyTransaction(String id, RuntimeException afterwards) {
            int result = inner.onceInFuture(id).join();
            if (afterwards != null) {
                throw afterwards;
            }
            return result;
        }

        @Transactional
        public int inMyTransaction(String id, RuntimeException afterwards) {
            int result = inner.once(id);
            if (afterwards != null) {
                throw afterwards;
            }
            return result;
        }
    }

    static class AsyncService {
        private final InnerService inner;
        private final TransactionTemplate transaction;

        AsyncService(InnerService inner, PlatformTransactionManager transactions) {
            this.inner = inner;
            this.transaction = new TransactionTemplate(transactions);
        }

        String commitAndFail(String id) {
            transaction.executeWithoutResult(
                    status -> inner.in("h2").update("insert into effect values (?, 'async')", id));
            throw new IllegalStateException("on a thread without an execution");
        }

        @Async("plain")
        public CompletableFuture<String> async(String id) {
            return CompletableFuture.completedFuture(commitAndFail(id));
        }

        @Idempotent(id = "#id")
        public CompletableFuture<String> future(String id) {
            return CompletableFuture.supplyAsync(() -> commitAndFail(id));
        }

        @Idempotent(id = "#id")
        public CompletableFuture<String> failing(String id) {
            return CompletableFuture.supplyAsync(() -> {
                throw new IllegalStateException("nothing was committed");
            });
        }
    }

    @RestController
    @Idempotent
    static class Handlers {
        private final InnerService inner;
        private final Map<String, PlatformTransactionManager> managers;

        private final Executor executor;
        private final AsyncService async;

        Handlers(
                InnerService inner,
                AsyncService async,
                Map<String, PlatformTransactionManager> managers,
                @Qualifier("applicationTaskExecutor") Executor executor) {
            this.inner = inner;
            this.managers = managers;
            this.executor = executor;
            this.async = async;
        }

        private TransactionTemplate transaction(String database) {
            return new TransactionTemplate(managers.get(database + "Transactions"));
        }

        private void effect(String database, String id) {
            inner.in(database).update("insert into effect values (?, 'x')", id);
        }

        private void commit(String database, String id) {
            transaction(database).executeWithoutResult(status -> effect(database, id));
        }

        @PostMapping("/{database}/thrown-after/{id}")
        String thrownAfter(@PathVariable("database") String database, @PathVariable("id") String id) {
            commit(database, id);
            throw new IllegalStateException("after the commit");
        }

        @PostMapping("/{database}/serialisation/{id}")
        BrokenResult serialisation(@PathVariable("database") String database, @PathVariable("id") String id) {
            commit(database, id);
            return new BrokenResult();
        }

        @PostMapping("/{database}/after-commit-listener/{id}")
        String listener(@PathVariable("database") String database, @PathVariable("id") String id) {
            transaction(database).executeWithoutResult(status -> {
                effect(database, id);
                TransactionSynchronizationManager.registerSynchronization(new TransactionSynchronization() {
                    @Override
                    public void afterCommit() {
                        throw new IllegalStateException("in a listener after the commit");
                    }
                });
            });
            return "never";
        }

        @PostMapping("/{database}/requires-new/{id}")
        String requiresNew(@PathVariable("database") String database, @PathVariable("id") String id) {
            TransactionTemplate separate = transaction(database);
            separate.setPropagationBehavior(TransactionDefinition.PROPAGATION_REQUIRES_NEW);
            transaction(database).executeWithoutResult(status -> {
                separate.executeWithoutResult(also -> effect(database, id));
                throw new IllegalStateException("rolls the outer one back");
            });
            return "never";
        }

        @PostMapping("/{database}/callable/{id}")
        Callable<String> callable(@PathVariable("database") String database, @PathVariable("id") String id) {
            return () -> {
                commit(database, id);
                throw new IllegalStateException("on the thread of a callable");
            };
        }

        @PostMapping("/{database}/future/{id}")
        CompletableFuture<String> future(@PathVariable("database") String database, @PathVariable("id") String id) {
            return CompletableFuture.supplyAsync(
                    () -> {
                        commit(database, id);
                        throw new IllegalStateException("on a thread of the application");
                    },
                    executor);
        }

        @PostMapping("/{database}/plain-future/{id}")
        CompletableFuture<String> plainFuture(@PathVariable("id") String id) {
            return CompletableFuture.supplyAsync(() -> async.commitAndFail(id));
        }

        @PostMapping("/{database}/async-service/{id}")
        CompletableFuture<String> asyncService(@PathVariable("id") String id) {
            return async.async(id);
        }

        @PostMapping("/{database}/deferred/{id}")
        DeferredResult<String> deferred(@PathVariable("id") String id) {
            DeferredResult<String> result = new DeferredResult<>();
            CompletableFuture.runAsync(() -> async.commitAndFail(id))
                    .whenComplete((nothing, failure) -> result.setErrorResult(failure));
            return result;
        }

        @PostMapping("/{database}/deferred-in-commit/{id}")
        DeferredResult<String> deferredInCommit(
                @PathVariable("database") String database, @PathVariable("id") String id) {
            DeferredResult<String> result = new DeferredResult<>();
            CompletableFuture.runAsync(() -> transaction(database).executeWithoutResult(status -> {
                effect(database, id);
                TransactionSynchronizationManager.registerSynchronization(new TransactionSynchronization() {
                    @Override
                    public void afterCommit() {
                        result.setErrorResult(new IllegalStateException("in a listener after the commit"));
                    }
                });
            }));
            return result;
        }

        @PostMapping("/{database}/callable-of-future/{id}")
        Callable<String> callableOfFuture(@PathVariable("id") String id) {
            return () ->
                    CompletableFuture.supplyAsync(() -> async.commitAndFail(id)).get();
        }

        @PostMapping("/{database}/failing-future/{id}")
        CompletableFuture<String> failingFuture() {
            return async.failing(UUID.randomUUID().toString());
        }

        @PostMapping("/{database}/failing-deferred/{id}")
        DeferredResult<String> failingDeferred() {
            DeferredResult<String> result = new DeferredResult<>();
            result.setErrorResult(new IllegalStateException("nothing was committed"));
            return result;
        }

        @PostMapping("/{database}/rolled-back-future/{id}")
        CompletableFuture<String> rolledBackFuture(
                @PathVariable("database") String database, @PathVariable("id") String id) {
            return CompletableFuture.supplyAsync(() -> rolledBack(database, id));
        }

        @PostMapping("/{database}/constraint-in-future/{id}")
        CompletableFuture<String> constraintInFuture(@PathVariable("id") String id) {
            return CompletableFuture.supplyAsync(() -> constraint(id));
        }

        @PostMapping("/{database}/kept/{id}")
        @Idempotent(failureRule = FailureRule.STORE_EVERYTHING)
        String kept(@PathVariable("database") String database, @PathVariable("id") String id) {
            commit(database, id);
            throw new IllegalStateException("after the commit");
        }

        @PostMapping("/{database}/rolled-back/{id}")
        String rolledBack(@PathVariable("database") String database, @PathVariable("id") String id) {
            transaction(database).executeWithoutResult(status -> {
                effect(database, id);
                throw new IllegalStateException("rolls back");
            });
            return "never";
        }

        @PostMapping("/{database}/nested/{id}")
        String nested(@PathVariable("database") String database, @PathVariable("id") String id) {
            TransactionTemplate savepoint = transaction(database);
            savepoint.setPropagationBehavior(TransactionDefinition.PROPAGATION_NESTED);
            transaction(database).executeWithoutResult(status -> {
                savepoint.executeWithoutResult(also -> effect(database, id));
                throw new IllegalStateException("rolls the savepoint back, too");
            });
            return "never";
        }

        @PostMapping("/{database}/read-only/{id}")
        String readOnly(@PathVariable("database") String database, @PathVariable("id") String id) {
            TransactionTemplate reading = transaction(database);
            reading.setReadOnly(true);
            reading.execute(status -> inner.effects(database, id));
            throw new IllegalStateException("after reading");
        }

        @PostMapping("/{database}/marked-rollback-only/{id}")
        String rollbackOnly(@PathVariable("database") String database, @PathVariable("id") String id) {
            transaction(database).executeWithoutResult(status -> {
                effect(database, id);
                status.setRollbackOnly();
            });
            throw new IllegalStateException("after a rollback");
        }

        @PostMapping("/pg/lost-at-commit/{id}")
        String lost(@PathVariable("id") String id) {
            transaction("pg").executeWithoutResult(status -> {
                effect("pg", id);
                Integer connection = inner.in("pg").queryForObject("select pg_backend_pid()", Integer.class);
                TransactionTemplate other = transaction("pg");
                other.setPropagationBehavior(TransactionDefinition.PROPAGATION_REQUIRES_NEW);
                other.setReadOnly(true);
                other.execute(also -> inner.in("pg")
                        .queryForObject("select pg_terminate_backend(" + connection + ")", Boolean.class));
            });
            return "never";
        }

        @PostMapping("/pg/constraint-at-commit/{id}")
        String constraint(@PathVariable("id") String id) {
            transaction("pg").executeWithoutResult(status -> {
                inner.in("pg").update("insert into late values (?)", id);
                inner.in("pg").update("insert into late values (?)", id);
            });
            return "never";
        }
    }

    private InnerService effects() {
        return server.bean(InnerService.class);
    }

    @ParameterizedTest
    @DisplayName("P6: a failure after a commit does not release the ID")
    @CsvSource({
        "h2, thrown-after",
        "h2, serialisation",
        "h2, after-commit-listener",
        "h2, requires-new",
        "h2, callable",
        "h2, future",
        "h2, plain-future",
        "h2, async-service",
        "h2, deferred",
        "h2, deferred-in-commit",
        "h2, callable-of-future",
        "pg, thrown-after",
        "pg, after-commit-listener",
        "pg, requires-new"
    })
    void aFailureAfterACommitDoesNotReleaseTheId(String database, String how) {
        String path = "/" + database + "/" + how + "/" + id;
        assertThat(server.post(path, id).status()).isEqualTo(500);
        assertThat(server.post(path, id).refusal()).isEqualTo("outcome-unknown");
        assertThat(effects().effects(database, id)).isEqualTo(1);
    }

    @Test
    @DisplayName("P6: a commit whose reply was lost does not release the ID")
    void aCommitWhoseReplyWasLostDoesNotReleaseTheId() {
        String path = "/pg/lost-at-commit/" + id;
        assertThat(server.post(path, id).status()).isEqualTo(500);
        assertThat(server.post(path, id).refusal()).isEqualTo("outcome-unknown");
    }

    @Test
    void afterACommitTheFailureIsKeptIfTheOperationSaysSo() {
        TestServer.Answer first = server.post("/h2/kept/" + id, id);
        TestServer.Answer second = server.post("/h2/kept/" + id, id);
        assertThat(first.status()).isEqualTo(500);
        assertThat(second.isReplayed()).isTrue();
        assertThat(second.same()).isEqualTo(first.same());
        assertThat(effects().effects("h2", id)).isEqualTo(1);
    }

    @ParameterizedTest
    @CsvSource({
        "h2, rolled-back",
        "h2, nested",
        "h2, read-only",
        "h2, marked-rollback-only",
        "h2, failing-future",
        "h2, failing-deferred",
        "h2, rolled-back-future",
        "pg, constraint-in-future",
        "pg, rolled-back",
        "pg, nested",
        "pg, constraint-at-commit"
    })
    void whatWasRolledBackIsReleased(String database, String how) {
        String path = "/" + database + "/" + how + "/" + id;
        for (int i = 0; i < 2; i++) {
            TestServer.Answer answer = server.post(path, id);
            assertThat(answer.status()).isEqualTo(500);
            assertThat(answer.refusal()).as("it runs again").isNull();
            assertThat(answer.isReplayed()).isFalse();
        }
        assertThat(effects().effects(database, id)).isZero();
    }

    @Test
    @DisplayName("P6: a future of a bean method that fails after a commit does not release the ID")
    void aFutureOfABeanMethodThatFailsAfterACommitDoesNotReleaseTheId() {
        AsyncService service = server.bean(AsyncService.class);
        assertThatThrownBy(() -> service.future(id).join()).hasRootCauseMessage("on a thread without an execution");
        assertThatThrownBy(() -> service.future(id).join())
                .cause()
                .isInstanceOf(ExecutionRefusedException.class)
                .hasMessageContaining("unknown");
        assertThat(effects().effects("h2", id)).isEqualTo(1);
    }

    @Test
    void aFutureOfABeanMethodThatFailsWithoutACommitIsReleased() {
        AsyncService service = server.bean(AsyncService.class);
        for (int i = 0; i < 2; i++) {
            assertThatThrownBy(() -> service.failing(id).join()).hasRootCauseMessage("nothing was committed");
        }
    }

    @Test
    @DisplayName("P6: a bean method is recorded when the transaction of its caller has ended")
    void aBeanMethodIsRecordedWhenTheTransactionOfItsCallerHasEnded() {
        OuterService outer = server.bean(OuterService.class);
        assertThatThrownBy(() -> outer.inMyTransaction(id, new IllegalStateException("rolls back")))
                .hasMessage("rolls back");
        assertThat(effects().effects("h2", id)).isZero();
        assertThat(outer.inMyTransaction(id, null)).as("it runs again").isEqualTo(1);
        assertThat(outer.inMyTransaction(id, null)).isEqualTo(1);
        assertThat(effects().once(id)).as("without a transaction").isEqualTo(1);
        assertThat(effects().effects("h2", id)).isEqualTo(1);
    }

    @Test
    @DisplayName("P6: a future of a bean method is recorded when the transaction of its caller has ended")
    void aFutureOfABeanMethodIsRecordedWhenTheTransactionOfItsCallerHasEnded() {
        OuterService outer = server.bean(OuterService.class);
        assertThatThrownBy(() -> outer.futureInMyTransaction(id, new IllegalStateException("rolls back")))
                .hasMessage("rolls back");
        assertThat(effects().effects("h2", id)).isZero();
        assertThat(outer.futureInMyTransaction(id, null)).as("it runs again").isEqualTo(1);
        assertThat(outer.futureInMyTransaction(id, null)).isEqualTo(1);
        assertThat(effects().onceInFuture(id).join())
                .as("without a transaction")
                .isEqualTo(1);
        assertThat(effects().effects("h2", id)).isEqualTo(1);
    }
}
