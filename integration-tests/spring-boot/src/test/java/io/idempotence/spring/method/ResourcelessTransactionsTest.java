package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.Idempotent;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.context.annotation.Primary;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.ResourceHolderSupport;
import org.springframework.transaction.support.ResourceHolderSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;
import org.springframework.transaction.support.TransactionTemplate;

/** The transactions of Spring Batch without a database, whose rollback takes nothing back. */
@Tag("all")
@Timeout(180)
class ResourcelessTransactionsTest {
    private static final AtomicInteger RUNS = new AtomicInteger();
    private static ConfigurableApplicationContext application;
    private static Payments payments;

    private final String id = UUID.randomUUID().toString();

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import(Payments.class)
    static class Application {
        @Bean
        @Primary
        DataSourceTransactionManager database(DataSource dataSource) {
            return new DataSourceTransactionManager(dataSource);
        }

        @Bean
        PlatformTransactionManager batch() {
            return BatchTransactions.withoutResources();
        }
    }

    static class Payments {
        @Idempotent(id = "#id")
        public int pay(String id) {
            return RUNS.incrementAndGet();
        }

        @Idempotent(id = "#id")
        public int payWithAResource(String id) {
            if (TransactionSynchronizationManager.isSynchronizationActive()) {
                ResourceHolderSupport holder = new ResourceHolderSupport() {};
                TransactionSynchronizationManager.bindResource(this, holder);
                TransactionSynchronizationManager.registerSynchronization(
                        new ResourceHolderSynchronization<>(holder, this) {});
            }
            return RUNS.incrementAndGet();
        }

        @Idempotent(id = "#id")
        public int fail(String id) {
            throw new IllegalStateException("run " + RUNS.incrementAndGet());
        }
    }

    @BeforeAll
    static void start() {
        application = new SpringApplicationBuilder(Application.class)
                .web(WebApplicationType.NONE)
                .properties("spring.main.banner-mode=off", "idempotence.server.storage=memory")
                .run();
        payments = application.getBean(Payments.class);
    }

    @AfterAll
    static void stop() {
        application.close();
    }

    @BeforeEach
    void countAnew() {
        RUNS.set(0);
    }

    /** A step may have one that is no bean. */
    private static TransactionTemplate chunk(boolean isBean) {
        return new TransactionTemplate(
                isBean
                        ? application.getBean("batch", PlatformTransactionManager.class)
                        : BatchTransactions.withoutResources());
    }

    /** The rollback of the chunk released the ID, and the job paid again when it was restarted. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    @DisplayName("P2: what ran in a chunk without a database does not run again after the chunk has failed")
    void whatRanInAChunkThatFailsDoesNotRunAgain(boolean isBean) {
        chunk(isBean).executeWithoutResult(chunk -> {
            payments.pay(id);
            chunk.setRollbackOnly();
        });
        assertThat(payments.pay(id)).isEqualTo(1);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aFailureInAChunkReleasesTheId(boolean isBean) {
        chunk(isBean)
                .executeWithoutResult(
                        chunk -> assertThatThrownBy(() -> payments.fail(id)).hasMessage("run 1"));
        assertThatThrownBy(() -> payments.fail(id)).hasMessage("run 2");
    }

    /** One that is no bean has no listener. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aTransactionOfADatabaseInAChunkStillDecides(boolean isBean) {
        TransactionTemplate database = new TransactionTemplate(
                isBean
                        ? application.getBean(DataSourceTransactionManager.class)
                        : new DataSourceTransactionManager(application.getBean(DataSource.class)));
        chunk(false)
                .executeWithoutResult(chunk -> database.executeWithoutResult(within -> {
                    payments.pay(id);
                    within.setRollbackOnly();
                }));
        assertThat(payments.pay(id)).isEqualTo(2);
    }

    /** As a transactional producer of Kafka does. */
    @Test
    void aResourceThatEndsWithTheChunkDecides() {
        chunk(true).executeWithoutResult(chunk -> {
            payments.payWithAResource(id);
            chunk.setRollbackOnly();
        });
        assertThat(payments.payWithAResource(id)).isEqualTo(2);
    }
}
