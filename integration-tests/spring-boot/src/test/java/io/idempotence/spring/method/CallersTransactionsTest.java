package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.idempotence.Idempotent;
import io.idempotence.server.ExecutionRefusedException;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.core.Ordered;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;
import org.springframework.transaction.support.TransactionTemplate;

/** Bean methods that are called within a transaction of their caller. */
@Timeout(180)
class CallersTransactionsTest {
    private static ConfigurableApplicationContext application;

    private final String id = UUID.randomUUID().toString();

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import({Once.class, Payments.class, Callers.class})
    static class Application {
        static ConfigurableApplicationContext start(String... arguments) {
            return new SpringApplicationBuilder(Application.class)
                    .web(WebApplicationType.NONE)
                    .properties(
                            "spring.main.banner-mode=off",
                            "idempotence.server.storage=memory",
                            "idempotence.server.max-wait=500ms")
                    .run(arguments);
        }
    }

    @BeforeAll
    static void start() {
        application = Application.start();
    }

    @AfterAll
    static void stop() {
        application.close();
    }

    static class Once {
        private final AtomicInteger runs = new AtomicInteger();

        public int runs() {
            return runs.get();
        }

        @Idempotent(id = "#id")
        public void fail(String id) throws IOException {
            throw new IOException("run " + runs.incrementAndGet());
        }

        @Idempotent(id = "#id")
        public Optional<Integer> run(String id) {
            return Optional.of(runs.incrementAndGet());
        }

        @Idempotent(id = "#id")
        public CompletableFuture<Integer> runInFuture(String id) {
            return CompletableFuture.completedFuture(runs.incrementAndGet());
        }

        @Idempotent(id = "#id")
        public CompletableFuture<String> pay(String id, CompletableFuture<String> receipt) {
            return receipt;
        }
    }

    static class Payments {
        private final JdbcTemplate database;

        Payments(DataSource dataSource) {
            database = new JdbcTemplate(dataSource);
            database.execute("CREATE TABLE payments (id VARCHAR(36))");
        }

        @Idempotent(id = "#id")
        @Transactional
        public void failToPay(String id) {
            database.update("INSERT INTO payments VALUES (?)", id);
            throw new IllegalStateException("no reply");
        }

        public List<String> made(String id) {
            return database.queryForList("SELECT id FROM payments WHERE id = ?", String.class, id);
        }
    }

    /** Their transactions commit though the method fails, because a checked exception does not roll back. */
    static class Callers {
        private final Once once;
        private final TransactionTemplate savepoints;

        Callers(Once once, PlatformTransactionManager transactions) {
            this.once = once;
            this.savepoints = new TransactionTemplate(transactions);
            savepoints.setPropagationBehavior(TransactionDefinition.PROPAGATION_NESTED);
        }

        @Transactional
        public void write(String id) throws IOException {
            once.fail(id);
        }

        @Transactional(readOnly = true)
        public void read(String id) throws IOException {
            once.fail(id);
        }

        /** Runs the first ID, and the second one in a savepoint to which it rolls back, and again in another one. */
        @Transactional
        public void runInSavepoints(String first, String second, boolean again) {
            once.run(first);
            try {
                savepoints.executeWithoutResult(status -> {
                    once.run(second);
                    throw new IllegalStateException("out of stock");
                });
            } catch (IllegalStateException e) {
                if (again) {
                    savepoints.executeWithoutResult(status -> once.run(second));
                }
            }
        }

        @Transactional
        public List<Object> runAll(List<String> batch) {
            List<Object> results = new ArrayList<>();
            batch.forEach(id -> results.add(once.run(id)));
            batch.forEach(id -> results.add(once.runInFuture(id).join()));
            return results;
        }
    }

    @Test
    @DisplayName("P6: a failure within a transaction that commits does not release the ID")
    void aFailureWithinATransactionThatCommitsDoesNotReleaseTheId() {
        Callers callers = application.getBean(Callers.class);
        assertThatThrownBy(() -> callers.write(id)).isInstanceOf(IOException.class);
        assertThatThrownBy(() -> callers.write(id)).isInstanceOf(ExecutionRefusedException.class);
    }

    /** Its outcome was unknown. */
    @Test
    void aFailureWithinAReadOnlyTransactionReleasesTheId() {
        Callers callers = application.getBean(Callers.class);
        assertThatThrownBy(() -> callers.read(id)).isInstanceOf(IOException.class);
        assertThatThrownBy(() -> callers.read(id)).isInstanceOf(IOException.class);
    }

    private static void afterCommit(boolean readOnly, Runnable work) {
        afterCommit(readOnly, () -> {}, work);
    }

    private static void afterCommit(boolean readOnly, Runnable before, Runnable work) {
        inTransaction(readOnly, before, new TransactionSynchronization() {
            @Override
            public int getOrder() {
                return Ordered.HIGHEST_PRECEDENCE;
            }

            @Override
            public void afterCommit() {
                work.run();
            }
        });
    }

    /** As a {@code @TransactionalEventListener} does. */
    private static void afterCompletion(Runnable work) {
        inTransaction(false, () -> {}, new TransactionSynchronization() {
            @Override
            public void afterCompletion(int status) {
                work.run();
            }
        });
    }

    private static void inTransaction(boolean readOnly, Runnable before, TransactionSynchronization synchronization) {
        TransactionTemplate transaction =
                new TransactionTemplate(application.getBean(PlatformTransactionManager.class));
        transaction.setReadOnly(readOnly);
        transaction.executeWithoutResult(status -> {
            before.run();
            TransactionSynchronizationManager.registerSynchronization(synchronization);
        });
    }

    @Test
    void aFailureAfterTheCommitOfAReadOnlyTransactionReleasesTheId() {
        Once once = application.getBean(Once.class);
        afterCommit(true, () -> assertThatThrownBy(() -> once.fail(id)).isInstanceOf(IOException.class));
        assertThatThrownBy(() -> once.fail(id)).isInstanceOf(IOException.class);
    }

    /** Its row stayed, because it had joined the transaction that was committed already. Its ID was released, so it paid again. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    @DisplayName("P6: a failure in a committed transaction that the method may have joined does not release the ID")
    void aFailureThatMayHaveJoinedTheCommittedTransactionDoesNotReleaseTheId(boolean afterCompletion) {
        Payments payments = application.getBean(Payments.class);
        // Spring swallows what is thrown in afterCompletion.
        List<Throwable> failures = new ArrayList<>();
        Runnable pay = () -> failures.add(catchThrowable(() -> payments.failToPay(id)));
        for (int i = 0; i < 2; i++) {
            if (afterCompletion) {
                afterCompletion(pay);
            } else {
                afterCommit(false, pay);
            }
        }
        assertThat(failures)
                .satisfiesExactly(
                        first -> assertThat(first).hasMessage("no reply"),
                        second -> assertThat(second).isInstanceOf(ExecutionRefusedException.class));
        assertThat(payments.made(id)).hasSize(1);
    }

    /** Spring forgets the ended transaction as soon as another one begins or joins it. */
    @ParameterizedTest
    @ValueSource(ints = {TransactionDefinition.PROPAGATION_REQUIRED, TransactionDefinition.PROPAGATION_REQUIRES_NEW})
    void aTransactionBeforeTheFailureHidesNothing(int propagation) {
        TransactionTemplate reading = new TransactionTemplate(application.getBean(PlatformTransactionManager.class));
        reading.setReadOnly(true);
        reading.setPropagationBehavior(propagation);
        Payments payments = application.getBean(Payments.class);
        List<Throwable> failures = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            afterCompletion(() -> {
                reading.executeWithoutResult(status -> {});
                failures.add(catchThrowable(() -> payments.failToPay(id)));
            });
        }
        assertThat(failures.get(1)).isInstanceOf(ExecutionRefusedException.class);
        assertThat(payments.made(id)).hasSize(1);
    }

    private static TransactionTemplate another() {
        TransactionTemplate another = new TransactionTemplate(application.getBean(PlatformTransactionManager.class));
        another.setPropagationBehavior(TransactionDefinition.PROPAGATION_REQUIRES_NEW);
        return another;
    }

    @Test
    void aRollbackOfATransactionThatBeginsAfterTheCommitReleasesTheId() {
        Payments payments = application.getBean(Payments.class);
        Runnable work = () -> assertThatThrownBy(() -> another().executeWithoutResult(status -> payments.failToPay(id)))
                .hasMessage("no reply");
        afterCommit(false, work);
        afterCommit(false, work);
        assertThat(payments.made(id)).isEmpty();
    }

    @Test
    @DisplayName("P6: a failure within a transaction that begins after the commit of another does not release the ID")
    void aFailureWithinATransactionAfterTheCommitDoesNotReleaseTheId() {
        Once once = application.getBean(Once.class);
        TransactionTemplate another = another();
        afterCommit(false, () -> {
            another.executeWithoutResult(
                    status -> assertThatThrownBy(() -> once.fail(id)).isInstanceOf(IOException.class));
            assertThat(once.run(id)).as("behind it").isEqualTo(once.run(id));
        });
        assertThatThrownBy(() -> once.fail(id)).isInstanceOf(ExecutionRefusedException.class);
    }

    /** It waited for the transaction that had called it, and was refused. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aDuplicateAfterTheCommitGetsTheResultOfTheCallBeforeIt(boolean readOnly) {
        Once once = application.getBean(Once.class);
        List<Object> results = new ArrayList<>();
        afterCommit(readOnly, () -> results.add(once.run(id)), () -> results.add(once.run(id)));
        assertThat(results).hasSize(2).containsOnly(once.run(id));
    }

    /** It waited for its own transaction until its time was over, and the whole batch failed whenever it was retried. */
    @Test
    void aDuplicateInTheSameTransactionGetsTheResultOfTheFirstCall() {
        Callers callers = application.getBean(Callers.class);
        List<Object> results = callers.runAll(List.of(id, id, UUID.randomUUID().toString()));
        assertThat(results.get(1)).isEqualTo(results.get(0)).isNotEqualTo(results.get(2));
        assertThat(results.get(4)).isEqualTo(results.get(3)).isNotEqualTo(results.get(5));
        assertThat(callers.runAll(List.of(id))).isEqualTo(List.of(results.get(0), results.get(3)));
    }

    /** The cancelled future was the method's own. So the ID was released, and a redelivery paid beside the first call. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    @DisplayName("P2: a caller in a transaction that cancels the future does not release the ID while the method works")
    void aCallerThatCancelsTheFutureDoesNotReleaseTheIdWhileTheMethodWorks(boolean ofADuplicate) throws Exception {
        Once once = application.getBean(Once.class);
        CompletableFuture<String> receipt = new CompletableFuture<>();
        another().executeWithoutResult(status -> {
            CompletableFuture<String> paid = once.pay(id, receipt);
            CompletableFuture<String> cancelled = ofADuplicate ? once.pay(id, receipt) : paid;
            cancelled.cancel(false);
            status.setRollbackOnly();
        });
        assertThat(receipt).isNotDone();
        assertThat(once.pay(id, CompletableFuture.completedFuture("second")))
                .failsWithin(Duration.ofSeconds(60))
                .withThrowableOfType(ExecutionException.class)
                .withCauseInstanceOf(ExecutionRefusedException.class);
        receipt.complete("first");
    }

    /** It counted as done with the transaction, and never ran. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aCallThatARollbackToASavepointTookBackRunsAgain(boolean inTheSameTransaction) {
        Once once = application.getBean(Once.class);
        String second = UUID.randomUUID().toString();
        int before = once.runs();
        application.getBean(Callers.class).runInSavepoints(id, second, inTheSameTransaction);
        assertThat(once.runs()).isEqualTo(before + (inTheSameTransaction ? 3 : 2));
        assertThat(once.run(second)).contains(before + 3);
        assertThat(once.run(id)).as("the call before the savepoint").contains(before + 1);
    }

    /** The property had no effect within a transaction of the caller. */
    @Test
    void aFailureReleasesTheIdIfCommitsAreNoEffects() {
        try (ConfigurableApplicationContext releasing =
                Application.start("--idempotence.transactions.never-release-after-commit=false")) {
            Callers callers = releasing.getBean(Callers.class);
            assertThatThrownBy(() -> callers.write(id)).hasMessage("run 1");
            assertThatThrownBy(() -> callers.write(id)).hasMessage("run 2");
        }
    }
}
