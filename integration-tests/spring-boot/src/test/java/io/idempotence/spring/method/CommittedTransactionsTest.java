package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.zaxxer.hikari.HikariDataSource;
import io.idempotence.server.ExecutionRefusedException;
import io.idempotence.server.IdempotentExecution;
import io.idempotence.server.jdbc.EmbeddedPostgreSql;
import io.idempotence.spring.method.CommittedEffects.AsyncService;
import io.idempotence.spring.method.CommittedEffects.Handlers;
import io.idempotence.spring.method.CommittedEffects.InnerService;
import io.idempotence.spring.method.CommittedEffects.OuterService;
import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import java.io.IOException;
import java.util.UUID;
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
import org.springframework.scheduling.annotation.EnableAsync;
import org.springframework.transaction.PlatformTransactionManager;

/** Nothing is released after a commit: real databases, real HTTP. */
@Timeout(180)
class CommittedTransactionsTest {
    private static EmbeddedPostgres postgres;
    private static TestServer server;

    private final String id = UUID.randomUUID().toString();

    @BeforeAll
    static void start() throws IOException {
        postgres = EmbeddedPostgreSql.start();
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
        pool.setConnectionTimeout(20_000);
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
        server.assertUnknownAfterAFailure("/" + database + "/" + how + "/" + id, id);
        assertThat(effects().effects(database, id)).isEqualTo(1);
    }

    @Test
    @DisplayName("P6: a commit whose reply was lost does not release the ID")
    void aCommitWhoseReplyWasLostDoesNotReleaseTheId() {
        server.assertUnknownAfterAFailure("/pg/lost-at-commit/" + id, id);
    }

    @Test
    void afterACommitTheFailureIsKeptIfTheOperationRequiresIt() {
        server.assertReplaysAFailure("/h2/kept/" + id, id);
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
        server.assertRunsAgainAfterAFailure("/" + database + "/" + how + "/" + id, id);
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
