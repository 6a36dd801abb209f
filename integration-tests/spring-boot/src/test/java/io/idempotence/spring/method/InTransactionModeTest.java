package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.zaxxer.hikari.HikariDataSource;
import io.idempotence.Idempotent;
import io.idempotence.server.ExecutionRefusedException;
import io.idempotence.server.jdbc.EmbeddedPostgreSql;
import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import java.io.IOException;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.context.annotation.Primary;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.SingleConnectionDataSource;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.stereotype.Service;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.annotation.Propagation;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.transaction.event.TransactionPhase;
import org.springframework.transaction.event.TransactionalEventListener;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;
import org.springframework.transaction.support.TransactionTemplate;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;

/** In-transaction mode: {@code @Transactional} handlers and services commit the mark of their execution with their data. */
@Timeout(180)
@ExtendWith(OutputCaptureExtension.class)
class InTransactionModeTest {
    private static final AtomicReference<Runnable> BEFORE_COMMIT = new AtomicReference<>();
    private static final JdbcTemplate ELSEWHERE =
            new JdbcTemplate(new SingleConnectionDataSource("jdbc:h2:mem:" + UUID.randomUUID(), "sa", "", true));
    private static EmbeddedPostgres postgres;
    private static TestServer server;
    private static JdbcTemplate jdbc;

    private final String id = UUID.randomUUID().toString();

    private static HikariDataSource pool() {
        HikariDataSource pool = new HikariDataSource();
        pool.setJdbcUrl(postgres.getJdbcUrl("postgres", "postgres"));
        pool.setUsername("postgres");
        pool.setConnectionTimeout(20_000);
        return pool;
    }

    @BeforeAll
    static void start() throws IOException {
        postgres = EmbeddedPostgreSql.start();
        server = TestServer.start(
                Application.class,
                "--idempotence.server.storage=jdbc",
                "--idempotence.server.jdbc.create-if-missing=true",
                "--idempotence.server.jdbc.in-transaction=true");
        jdbc = server.bean(JdbcTemplate.class);
        jdbc.execute("create table effect (id varchar(100))");
        ELSEWHERE.execute("create table effect (id varchar(100))");
    }

    @AfterAll
    static void stop() throws IOException {
        server.close();
        postgres.close();
    }

    @BeforeEach
    void reset() {
        BEFORE_COMMIT.set(() -> {});
        jdbc.update("delete from effect");
        jdbc.update("delete from idempotence_record");
        jdbc.update("delete from idempotence_applied");
    }

    @Import({Handlers.class, Bookings.class, LastWorker.class})
    static class Application {
        @Bean
        DataSource dataSource() {
            return pool();
        }

        @Bean
        @Primary
        PlatformTransactionManager transactionManager(DataSource dataSource) {
            return new JdbcTransactionManager(dataSource);
        }

        @Bean
        PlatformTransactionManager elsewhere() {
            return new JdbcTransactionManager(ELSEWHERE.getDataSource());
        }
    }

    @Service
    static class Bookings {
        private final JdbcTemplate jdbc;
        private final TransactionTemplate inStorage;
        private final TransactionTemplate inElsewhere;

        Bookings(
                JdbcTemplate jdbc,
                PlatformTransactionManager transactionManager,
                @Qualifier("elsewhere") PlatformTransactionManager elsewhere) {
            this.jdbc = jdbc;
            this.inStorage = new TransactionTemplate(transactionManager);
            this.inElsewhere = new TransactionTemplate(elsewhere);
        }

        @Transactional
        public void book() {
            jdbc.update("insert into effect values ('booked')");
            BEFORE_COMMIT.get().run();
        }

        @Transactional("elsewhere")
        public void bookElsewhere() {
            ELSEWHERE.update("insert into effect values ('elsewhere')");
        }

        @Transactional
        public void bookWithElsewhere() {
            jdbc.update("insert into effect values ('around')");
            inElsewhere.executeWithoutResult(status -> ELSEWHERE.update("insert into effect values ('within')"));
        }

        @Transactional("elsewhere")
        public void bookElsewhereWithBooking() {
            ELSEWHERE.update("insert into effect values ('around')");
            inStorage.executeWithoutResult(status -> jdbc.update("insert into effect values ('within')"));
        }

        @Transactional(propagation = Propagation.REQUIRES_NEW)
        public void bookAgain() {
            jdbc.update("insert into effect values ('again')");
        }

        @Idempotent(id = "#id")
        @Transactional
        public String once(String id) {
            jdbc.update("insert into effect values ('once')");
            return "once";
        }

        @Idempotent(id = "#id")
        public void onceElsewhere(String id) {
            ELSEWHERE.update("insert into effect values ('once')");
        }
    }

    /** Work of a transaction that is done just before its commit. */
    record LastWork(Runnable work) {}

    record FirstAfterCommit(Runnable work) implements TransactionSynchronization {
        @Override
        public int getOrder() {
            return 0;
        }

        @Override
        public void afterCommit() {
            work.run();
        }
    }

    @Service
    static class LastWorker {
        @TransactionalEventListener(phase = TransactionPhase.BEFORE_COMMIT)
        void finish(LastWork last) {
            last.work().run();
        }
    }

    @RestController
    @Idempotent
    static class Handlers {
        private final Bookings bookings;

        Handlers(Bookings bookings) {
            this.bookings = bookings;
        }

        @PostMapping("/book")
        String book() {
            bookings.book();
            return "booked";
        }

        @PostMapping("/elsewhere")
        String elsewhere() {
            bookings.bookElsewhere();
            return "booked";
        }

        @PostMapping("/elsewhere-within")
        String elsewhereWithin() {
            bookings.bookWithElsewhere();
            return "booked";
        }

        @PostMapping("/within-elsewhere")
        String withinElsewhere() {
            bookings.bookElsewhereWithBooking();
            return "booked";
        }

        @PostMapping("/twice")
        String twice() {
            bookings.book();
            bookings.bookAgain();
            return "booked twice";
        }
    }

    private static int effects() {
        return jdbc.queryForObject("select count(*) from effect", Integer.class);
    }

    private static int marks() {
        return jdbc.queryForObject("select count(*) from idempotence_applied", Integer.class);
    }

    @Test
    void aTransactionCommitsTheMarkOfItsExecution() {
        assertThat(server.post("/book", id).body()).isEqualTo("booked");
        assertThat(server.post("/book", id).isReplayed()).isTrue();
        assertThat(effects()).isEqualTo(1);
        assertThat(marks()).isEqualTo(1);
    }

    @Test
    void oneMarkCoversAllTransactionsOfAnExecution() {
        assertThat(server.post("/twice", id).body()).isEqualTo("booked twice");
        assertThat(effects()).isEqualTo(2);
        assertThat(marks()).isEqualTo(1);
    }

    @Test
    void aTransactionAfterTheCommitNeedsNoMarkOfItsOwn() {
        Bookings bookings = server.bean(Bookings.class);
        BEFORE_COMMIT.set(() ->
                TransactionSynchronizationManager.registerSynchronization(new FirstAfterCommit(bookings::bookAgain)));
        assertThat(server.post("/book", id).body()).isEqualTo("booked");
        assertThat(effects()).isEqualTo(2);
        assertThat(marks()).isEqualTo(1);
    }

    @Test
    void aTransactionJustBeforeTheCommitDoesNotWaitForTheMarkOfTheOneAroundIt() {
        Bookings bookings = server.bean(Bookings.class);
        BEFORE_COMMIT.set(() -> server.context().publishEvent(new LastWork(bookings::bookAgain)));
        assertThat(server.post("/book", id).body()).isEqualTo("booked");
        assertThat(effects()).isEqualTo(2);
        assertThat(marks()).isEqualTo(1);
    }

    @Test
    void aBeanMethodMarksItsExecutionToo() {
        assertThat(server.bean(Bookings.class).once(id)).isEqualTo("once");
        assertThat(server.bean(Bookings.class).once(id)).isEqualTo("once");
        assertThat(effects()).isEqualTo(1);
        assertThat(marks()).isEqualTo(1);
    }

    private static void finishWith(String manager, Runnable work) {
        PlatformTransactionManager transactions = server.context().getBean(manager, PlatformTransactionManager.class);
        new TransactionTemplate(transactions)
                .executeWithoutResult(status -> server.context().publishEvent(new LastWork(work)));
    }

    @Test
    void aBeanMethodThatARollbackToASavepointTookBackIsNotMarked() {
        PlatformTransactionManager transactions = server.bean(PlatformTransactionManager.class);
        TransactionTemplate savepoint = new TransactionTemplate(transactions);
        savepoint.setPropagationBehavior(TransactionDefinition.PROPAGATION_NESTED);
        Bookings bookings = server.bean(Bookings.class);
        new TransactionTemplate(transactions)
                .executeWithoutResult(around -> savepoint.executeWithoutResult(status -> {
                    bookings.once(id);
                    status.setRollbackOnly();
                }));
        assertThat(effects()).isZero();
        assertThat(marks()).isZero();
        assertThat(bookings.once(id)).isEqualTo("once");
        assertThat(effects()).isEqualTo(1);
        assertThat(marks()).isEqualTo(1);
    }

    /** It was not marked, so after a crash it ran again. */
    @Test
    @DisplayName("P2: a bean method called just before the commit does not run again after a crash")
    void aBeanMethodCalledJustBeforeTheCommitMarksItsExecutionToo() {
        Bookings bookings = server.bean(Bookings.class);
        finishWith("transactionManager", () -> bookings.once(id));
        assertThat(effects()).isEqualTo(1);
        assertThat(marks()).isEqualTo(1);
        // As a process leaves it that dies between its commit and its record.
        assertThat(jdbc.update("delete from idempotence_record")).isEqualTo(1);
        assertThatThrownBy(() -> bookings.once(id)).isInstanceOf(ExecutionRefusedException.class);
        assertThat(effects()).isEqualTo(1);
    }

    @Test
    void aTransactionThatCannotCommitAMarkJustBeforeItsCommitIsRolledBack() {
        Bookings bookings = server.bean(Bookings.class);
        for (int i = 0; i < 2; i++) {
            assertThatThrownBy(() -> finishWith("elsewhere", () -> bookings.onceElsewhere(id)))
                    .as("the ID was released")
                    .hasMessageContaining("is not one of the DataSource that has the idempotence records");
            assertThat(ELSEWHERE.queryForObject("select count(*) from effect", Integer.class))
                    .isZero();
        }
        assertThat(marks()).isZero();
    }

    @Test
    void aBeanMethodCalledAfterTheCommitIsNotPartOfTheTransaction() {
        Bookings bookings = server.bean(Bookings.class);
        finishWith(
                "transactionManager",
                () -> TransactionSynchronizationManager.registerSynchronization(
                        new FirstAfterCommit(() -> bookings.onceElsewhere(id))));
        assertThat(marks()).isZero();
        bookings.onceElsewhere(id);
        assertThat(ELSEWHERE.update("delete from effect")).isEqualTo(1);
    }

    @ParameterizedTest
    @ValueSource(strings = {"/elsewhere", "/elsewhere-within"})
    void aTransactionThatCannotCommitTheMarkIsRolledBack(String path, CapturedOutput output) {
        assertThat(server.post(path, id).status()).isEqualTo(500);
        assertThat(ELSEWHERE.queryForObject("select count(*) from effect", Integer.class))
                .isZero();
        assertThat(effects()).isZero();
        assertThat(marks()).isZero();
        assertThat(output).contains("is not one of the DataSource that has the idempotence records");
        assertThat(server.post(path, id).status()).as("the ID was released").isEqualTo(500);
    }

    @Test
    void aMarkThatIsCommittedCoversTheTransactionAroundIt() {
        assertThat(server.post("/within-elsewhere", id).body()).isEqualTo("booked");
        assertThat(effects()).isEqualTo(1);
        assertThat(marks()).isEqualTo(1);
        assertThat(ELSEWHERE.update("delete from effect")).isEqualTo(1);
    }

    @Test
    void aRollbackTakesTheMarkBackAndReleasesTheId() {
        BEFORE_COMMIT.set(() -> {
            throw new IllegalStateException("out of stock");
        });
        assertThat(server.post("/book", id).status()).isEqualTo(500);
        assertThat(effects()).isZero();
        assertThat(marks()).isZero();
        BEFORE_COMMIT.set(() -> {});
        assertThat(server.post("/book", id).body()).isEqualTo("booked");
        assertThat(effects()).isEqualTo(1);
    }

    @Test
    @DisplayName("P2: of two duplicates at once, one runs and the other gets its result")
    void aDuplicateOfARunningRequestWaitsForItsResult() throws Exception {
        CountDownLatch isRunning = new CountDownLatch(1);
        CompletableFuture<Void> mayCommit = new CompletableFuture<>();
        BEFORE_COMMIT.set(() -> {
            isRunning.countDown();
            mayCommit.join();
        });
        CompletableFuture<TestServer.Response> first = server.postAsync("/book", id);
        assertThat(isRunning.await(60, TimeUnit.SECONDS)).isTrue();
        CompletableFuture<TestServer.Response> second =
                server.postAsync("/book", id, "Content-Type", "application/json", "Prefer", "wait=30");
        mayCommit.complete(null);
        assertThat(first.get(60, TimeUnit.SECONDS).body()).isEqualTo("booked");
        assertThat(second.get(60, TimeUnit.SECONDS).isReplayed()).isTrue();
        assertThat(effects()).isEqualTo(1);
    }

    @Test
    @DisplayName("P2: a crash after the business commit is never followed by a second run")
    void aCrashAfterTheCommitDoesNotRunAgain() {
        assertThat(server.post("/book", id).body()).isEqualTo("booked");
        // As a process leaves it that dies between its commit and its record: the mark is there, the claim is over.
        assertThat(jdbc.update("delete from idempotence_record")).isEqualTo(1);
        TestServer.Response retry = server.post("/book", id);
        assertThat(retry.refusal()).isEqualTo("result-unavailable");
        assertThat(effects()).isEqualTo(1);
    }

    @Test
    @DisplayName("P2: a crash before the business commit leaves nothing, and a retry runs")
    void aCrashBeforeTheCommitRunsAgain() {
        // PostgreSQL ends the session of a process that dies, and rolls back.
        BEFORE_COMMIT.set(InTransactionModeTest::endTheSession);
        assertThat(server.post("/book", id).status()).isGreaterThanOrEqualTo(500);
        assertThat(effects()).isZero();
        assertThat(marks()).isZero();
        BEFORE_COMMIT.set(() -> {});
        assertThat(server.post("/book", id).body()).isEqualTo("booked");
        assertThat(effects()).isEqualTo(1);
    }

    private static void endTheSession() {
        int session = jdbc.queryForObject("select pg_backend_pid()", Integer.class);
        try (HikariDataSource other = pool()) {
            new JdbcTemplate(other).queryForObject("select pg_terminate_backend(?)", Boolean.class, session);
        }
    }

    @Test
    @DisplayName("P3: an execution that was overtaken rolls back, and its caller gets no success")
    void anExecutionThatWasOvertakenRollsBack() {
        // As if another instance had taken the claim over while this handler was paused.
        BEFORE_COMMIT.set(() -> {
            try (HikariDataSource other = pool()) {
                new JdbcTemplate(other).update("delete from idempotence_record");
            }
        });
        assertThat(server.post("/book", id).status()).isGreaterThanOrEqualTo(400);
        assertThat(effects()).isZero();
        assertThat(marks()).isZero();
    }
}
