package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.Idempotent;
import io.idempotence.spring.server.IdempotenceServerAutoConfiguration;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Lazy;
import org.springframework.jdbc.datasource.DriverManagerDataSource;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/** An application whose transaction manager is in the parent of its context. */
class ContextHierarchyTest {
    static class Payments {
        private final TransactionTemplate transaction;

        Payments(PlatformTransactionManager transactions) {
            this.transaction = new TransactionTemplate(transactions);
        }

        @Idempotent(id = "#id", maxWait = "0s")
        public void payAndFail(String id) {
            transaction.executeWithoutResult(status -> {});
            throw new IllegalStateException("after the commit");
        }

        @Idempotent(id = "#id", maxWait = "0s")
        public CompletableFuture<Void> payAndFailElsewhere(String id) {
            CompletableFuture<Void> result = new CompletableFuture<>();
            new Thread(() -> {
                        transaction.executeWithoutResult(status -> {});
                        result.completeExceptionally(new IllegalStateException("after the commit"));
                    })
                    .start();
            return result;
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Parent {
        @Bean
        JdbcTransactionManager transactions() {
            return new JdbcTransactionManager(
                    new DriverManagerDataSource("jdbc:h2:mem:" + UUID.randomUUID() + ";DB_CLOSE_DELAY=-1"));
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Child {
        @Bean
        Payments payments(PlatformTransactionManager transactions) {
            return new Payments(transactions);
        }
    }

    /** An application with operations of bean methods. */
    static ApplicationContextRunner application(Class<?>... configurations) {
        return new ApplicationContextRunner()
                .withUserConfiguration(configurations)
                .withConfiguration(AutoConfigurations.of(
                        IdempotenceServerAutoConfiguration.class, IdempotenceMethodAutoConfiguration.class))
                .withPropertyValues("idempotence.server.storage=memory");
    }

    /** The operation ran again. */
    private static void assertCommitsAreSeen(ApplicationContext parent) {
        application(Child.class).withParent(parent).run(context -> {
            Payments payments = context.getBean(Payments.class);
            assertThatThrownBy(() -> payments.payAndFail("1")).hasMessage("after the commit");
            assertThatThrownBy(() -> payments.payAndFail("1")).hasMessageContaining("outcome-unknown");
            assertThatThrownBy(() -> payments.payAndFailElsewhere("2").get()).hasRootCauseMessage("after the commit");
            assertThatThrownBy(() -> payments.payAndFailElsewhere("2").get()).hasMessageContaining("outcome-unknown");
        });
    }

    @Test
    @DisplayName("P6: the commits of a transaction manager in a parent context are seen")
    void commitsInAParentAreSeen() {
        try (var parent = new AnnotationConfigApplicationContext(Parent.class);
                var grandchild = new AnnotationConfigApplicationContext()) {
            assertCommitsAreSeen(parent);
            grandchild.setParent(parent);
            grandchild.refresh();
            assertCommitsAreSeen(grandchild);
            assertThat(parent.getBean(JdbcTransactionManager.class).getTransactionExecutionListeners())
                    .as("those of contexts that are closed")
                    .isEmpty();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class ParentWithAnotherManager extends Parent {
        @Bean
        @Lazy
        JdbcTransactionManager ofAnotherDatabase() {
            throw new IllegalStateException("this one is configured elsewhere");
        }
    }

    @Test
    @DisplayName("a lazy transaction manager in a parent context is not created for its listener")
    void aLazyManagerInAParentIsNotCreated() {
        try (var parent = new AnnotationConfigApplicationContext(ParentWithAnotherManager.class)) {
            application()
                    .withParent(parent)
                    .run(context -> assertThat(context.getStartupFailure()).isNull());
        }
    }

    @Test
    @DisplayName("P6: the commits of a transaction manager in a parent context that has the starter, too, are seen")
    void commitsInAParentWithTheStarterAreSeen() {
        application(Parent.class).run(ContextHierarchyTest::assertCommitsAreSeen);
    }
}
