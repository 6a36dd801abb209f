package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.Idempotent;
import io.idempotence.server.ExecutionRefusedException;
import java.io.IOException;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.support.AbstractPlatformTransactionManager;
import org.springframework.transaction.support.DefaultTransactionStatus;
import org.springframework.transaction.support.TransactionTemplate;

/** Transactions whose manager calls no synchronizations, as those of Kafka, JMS and RabbitMQ do. */
@Tag("all")
@Timeout(180)
class SilentTransactionsTest {
    private final String id = UUID.randomUUID().toString();

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import({Messages.class, Once.class})
    static class Application {
        @Bean
        DataSourceTransactionManager database(DataSource dataSource) {
            return new DataSourceTransactionManager(dataSource);
        }
    }

    /** A scope of a database that has no part in what takes effect, within a transaction of the broker. */
    enum Scope {
        SUPPORTS(TransactionDefinition.PROPAGATION_SUPPORTS, false),
        NOT_SUPPORTED(TransactionDefinition.PROPAGATION_NOT_SUPPORTED, false),
        READ_ONLY(TransactionDefinition.PROPAGATION_REQUIRED, true);

        private final int propagation;
        private final boolean readOnly;

        Scope(int propagation, boolean readOnly) {
            this.propagation = propagation;
            this.readOnly = readOnly;
        }

        TransactionTemplate in(ConfigurableApplicationContext application) {
            TransactionTemplate scope =
                    new TransactionTemplate(application.getBean(DataSourceTransactionManager.class));
            scope.setPropagationBehavior(propagation);
            scope.setReadOnly(readOnly);
            return scope;
        }
    }

    /** The transactions of a broker. */
    static class Messages extends AbstractPlatformTransactionManager {
        private final AtomicInteger commits = new AtomicInteger();
        private RuntimeException commitFails;
        private RuntimeException rollbackFails;

        Messages() {
            setTransactionSynchronization(SYNCHRONIZATION_NEVER);
        }

        @Override
        protected Object doGetTransaction() {
            return new Object();
        }

        @Override
        protected void doBegin(Object transaction, TransactionDefinition definition) {}

        @Override
        protected void doCommit(DefaultTransactionStatus status) {
            if (commitFails != null) {
                throw commitFails;
            }
            commits.incrementAndGet();
        }

        @Override
        protected void doRollback(DefaultTransactionStatus status) {
            if (rollbackFails != null) {
                throw rollbackFails;
            }
        }
    }

    static class Once {
        private final AtomicInteger runs = new AtomicInteger();
        private final TransactionTemplate transactions;

        Once(Messages messages) {
            transactions = new TransactionTemplate(messages);
        }

        public int runs() {
            return runs.get();
        }

        @Idempotent(id = "#id")
        public int run(String id) {
            return runs.incrementAndGet();
        }

        @Idempotent(id = "#id")
        public void fail(String id) throws IOException {
            throw new IOException("run " + runs.incrementAndGet());
        }

        @Idempotent(id = "#id")
        public void send(String id) {
            transactions.executeWithoutResult(status -> runs.incrementAndGet());
        }
    }

    private static ConfigurableApplicationContext start(String... arguments) {
        return new SpringApplicationBuilder(Application.class)
                .web(WebApplicationType.NONE)
                .properties("spring.main.banner-mode=off", "idempotence.server.storage=memory")
                .run(arguments);
    }

    @Test
    void whatWasRolledBackRunsAgain() {
        try (ConfigurableApplicationContext application = start()) {
            Once once = application.getBean(Once.class);
            TransactionTemplate callers = new TransactionTemplate(application.getBean(Messages.class));
            callers.executeWithoutResult(status -> {
                assertThat(once.run(id)).isEqualTo(1);
                assertThat(once.run(id)).isEqualTo(1);
                status.setRollbackOnly();
            });
            assertThat(callers.<Integer>execute(status -> once.run(id))).isEqualTo(2);
            assertThat(once.run(id)).isEqualTo(2);
            assertThat(once.runs()).isEqualTo(2);
        }
    }

    /** Its result was stored at once, so a message that the rollback had taken back was never sent. */
    @ParameterizedTest
    @EnumSource(Scope.class)
    void whatWasRolledBackAroundAScopeOfADatabaseRunsAgain(Scope scope) {
        try (ConfigurableApplicationContext application = start()) {
            Once once = application.getBean(Once.class);
            TransactionTemplate callers = new TransactionTemplate(application.getBean(Messages.class));
            callers.executeWithoutResult(status -> {
                scope.in(application).executeWithoutResult(within -> once.run(id));
                status.setRollbackOnly();
            });
            assertThat(callers.<Integer>execute(status -> scope.in(application).execute(within -> once.run(id))))
                    .isEqualTo(2);
            assertThat(once.run(id)).isEqualTo(2);
        }
    }

    @ParameterizedTest
    @EnumSource(Scope.class)
    @DisplayName("P6: a failure in a scope of a database, within a transaction that commits, does not release the ID")
    void aFailureWithinATransactionThatCommitsDoesNotReleaseTheId(Scope scope) {
        try (ConfigurableApplicationContext application = start()) {
            Once once = application.getBean(Once.class);
            new TransactionTemplate(application.getBean(Messages.class))
                    .executeWithoutResult(status -> scope.in(application)
                            .executeWithoutResult(within ->
                                    assertThatThrownBy(() -> once.fail(id)).isInstanceOf(IOException.class)));
            assertThatThrownBy(() -> once.fail(id)).isInstanceOf(ExecutionRefusedException.class);
        }
    }

    /** It looked only among the calls of the database, waited for the broker's transaction, and was refused. */
    @ParameterizedTest
    @EnumSource(Scope.class)
    void aDuplicateInATransactionOfADatabaseGetsTheResultOfTheCallBeforeIt(Scope scope) {
        try (ConfigurableApplicationContext application = start()) {
            Once once = application.getBean(Once.class);
            TransactionTemplate database =
                    new TransactionTemplate(application.getBean(DataSourceTransactionManager.class));
            new TransactionTemplate(application.getBean(Messages.class)).executeWithoutResult(status -> {
                scope.in(application).executeWithoutResult(within -> once.run(id));
                assertThat(database.<Integer>execute(within -> once.run(id))).isEqualTo(1);
            });
            assertThat(once.run(id)).isEqualTo(1);
        }
    }

    @Test
    void aTransactionOfADatabaseDecidesAboutWhatItsOwnRollbackTakesBack() {
        try (ConfigurableApplicationContext application = start()) {
            Once once = application.getBean(Once.class);
            TransactionTemplate database =
                    new TransactionTemplate(application.getBean(DataSourceTransactionManager.class));
            new TransactionTemplate(application.getBean(Messages.class))
                    .executeWithoutResult(status -> database.executeWithoutResult(within -> {
                        once.run(id);
                        within.setRollbackOnly();
                    }));
            assertThat(once.run(id)).isEqualTo(2);
        }
    }

    /** After a commit that Kafka did not confirm, its producer ignores the abort. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aCommitThatMayHaveFailedIsUnknown(boolean isRollbackIgnored) {
        try (ConfigurableApplicationContext application = start()) {
            Once once = application.getBean(Once.class);
            Messages messages = application.getBean(Messages.class);
            messages.commitFails = new IllegalStateException("the broker does not respond");
            messages.rollbackFails = isRollbackIgnored ? null : messages.commitFails;
            assertThatThrownBy(() -> new TransactionTemplate(messages).executeWithoutResult(status -> once.run(id)))
                    .isSameAs(messages.commitFails);
            assertThatThrownBy(() -> once.run(id))
                    .isInstanceOf(ExecutionRefusedException.class)
                    .hasMessageContaining("outcome-unknown");
            assertThat(once.runs()).isEqualTo(1);
        }
    }

    @Test
    void aCommitThatMayHaveFailedIsReleasedIfCommitsAreNoEffects() {
        try (ConfigurableApplicationContext application =
                start("--idempotence.transactions.never-release-after-commit=false")) {
            Once once = application.getBean(Once.class);
            Messages messages = application.getBean(Messages.class);
            messages.commitFails = new IllegalStateException("the broker does not respond");
            assertThatThrownBy(() -> new TransactionTemplate(messages).executeWithoutResult(status -> once.run(id)))
                    .isSameAs(messages.commitFails);
            assertThat(once.run(id)).as("it ran again").isEqualTo(2);
        }
    }

    @Test
    void nothingIsCommittedWithoutItsMark() {
        try (ConfigurableApplicationContext application = start(
                "--spring.datasource.url=jdbc:h2:mem:" + id,
                "--idempotence.server.storage=jdbc",
                "--idempotence.server.jdbc.create-if-missing=true",
                "--idempotence.server.jdbc.in-transaction=true")) {
            Once once = application.getBean(Once.class);
            assertThatThrownBy(() -> once.send(id))
                    .hasMessageContaining("is not one of the DataSource that has the idempotence records");
            assertThatThrownBy(() -> new TransactionTemplate(application.getBean(Messages.class))
                            .executeWithoutResult(status -> once.run(id)))
                    .hasMessageContaining("is not one of the DataSource that has the idempotence records");
            assertThat(application.getBean(Messages.class).commits).hasValue(0);
        }
    }
}
