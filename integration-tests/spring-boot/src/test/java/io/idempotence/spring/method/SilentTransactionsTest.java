package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.Idempotent;
import io.idempotence.server.ExecutionRefusedException;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.support.AbstractPlatformTransactionManager;
import org.springframework.transaction.support.DefaultTransactionStatus;
import org.springframework.transaction.support.TransactionTemplate;

/** Transactions whose manager calls no synchronizations, as those of Kafka, JMS and RabbitMQ do. */
@Timeout(60)
@Tag("boot-3")
class SilentTransactionsTest {
    private final String id = UUID.randomUUID().toString();

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import({Messages.class, Once.class})
    static class Application {}

    /** The transactions of a broker. */
    static class Messages extends AbstractPlatformTransactionManager {
        private final AtomicInteger commits = new AtomicInteger();
        private RuntimeException commitFails;

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
            if (commitFails != null) {
                throw commitFails;
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

    @Test
    void aCommitThatMayHaveFailedIsUnknown() {
        try (ConfigurableApplicationContext application = start()) {
            Once once = application.getBean(Once.class);
            Messages messages = application.getBean(Messages.class);
            messages.commitFails = new IllegalStateException("the broker does not respond");
            assertThatThrownBy(() -> new TransactionTemplate(messages).executeWithoutResult(status -> once.run(id)))
                    .isSameAs(messages.commitFails);
            assertThatThrownBy(() -> once.run(id))
                    .isInstanceOf(ExecutionRefusedException.class)
                    .hasMessageContaining("outcome-unknown");
            assertThat(once.runs()).isEqualTo(1);
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
