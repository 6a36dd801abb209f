package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.server.ExecutionRefusedException;
import io.idempotence.spring.method.ContextHierarchyTest.Payments;
import java.util.UUID;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.beans.factory.FactoryBean;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.beans.factory.config.BeanFactoryPostProcessor;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.beans.factory.support.BeanDefinitionRegistry;
import org.springframework.beans.factory.support.BeanDefinitionRegistryPostProcessor;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.PriorityOrdered;
import org.springframework.jdbc.datasource.DriverManagerDataSource;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.PlatformTransactionManager;

/** Beans on which a post-processor depends. Spring creates them before the starter's post-processors, and perhaps before it makes proxies. */
class EarlyCreatedBeansTest {
    static class Users implements BeanPostProcessor {
        Users(Object used) {}
    }

    static final class FirstUsers extends Users implements PriorityOrdered {
        FirstUsers(Object used) {
            super(used);
        }

        @Override
        public int getOrder() {
            return 0;
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Application {
        @Bean
        PlatformTransactionManager transactions() {
            return new JdbcTransactionManager(
                    new DriverManagerDataSource("jdbc:h2:mem:" + UUID.randomUUID() + ";DB_CLOSE_DELAY=-1"));
        }

        @Bean
        Payments payments(PlatformTransactionManager transactions) {
            return new Payments(transactions);
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class UserOfTransactions {
        @Bean
        static Users users(PlatformTransactionManager transactions) {
            return new Users(transactions);
        }
    }

    static class UsersOfDefinitions implements BeanFactoryPostProcessor {
        UsersOfDefinitions(Object used) {}

        @Override
        public void postProcessBeanFactory(ConfigurableListableBeanFactory factory) {}
    }

    @Configuration(proxyBeanMethods = false)
    static class FirstUserOfPayments {
        @Bean
        static FirstUsers users(Payments payments) {
            return new FirstUsers(payments);
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class UserOfPaymentsAndDefinitions {
        @Bean
        static UsersOfDefinitions users(Payments payments) {
            return new UsersOfDefinitions(payments);
        }
    }

    static class UsersOfRegistry extends UsersOfDefinitions implements BeanDefinitionRegistryPostProcessor {
        UsersOfRegistry(Object used) {
            super(used);
        }

        @Override
        public void postProcessBeanDefinitionRegistry(BeanDefinitionRegistry registry) {}
    }

    @Configuration(proxyBeanMethods = false)
    static class UserOfPaymentsAndRegistry {
        @Bean
        static UsersOfRegistry users(Payments payments) {
            return new UsersOfRegistry(payments);
        }
    }

    static class PaymentsFactory implements FactoryBean<Payments> {
        private final PlatformTransactionManager transactions;

        PaymentsFactory(PlatformTransactionManager transactions) {
            this.transactions = transactions;
        }

        @Override
        public Payments getObject() {
            return new Payments(transactions);
        }

        @Override
        public Class<?> getObjectType() {
            return Payments.class;
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class FirstUserOfMadePayments {
        @Bean
        static PaymentsFactory made(PlatformTransactionManager transactions) {
            return new PaymentsFactory(transactions);
        }

        @Bean
        static FirstUsers users(@Qualifier("made") Payments payments) {
            return new FirstUsers(payments);
        }
    }

    private static ApplicationContextRunner application(Class<?> user) {
        return ContextHierarchyTest.application(user, Application.class);
    }

    @Test
    @DisplayName("P6: the commits of a transaction manager that was created early are seen")
    void commitsOfAnEarlyTransactionManagerAreSeen() {
        application(UserOfTransactions.class).run(context -> {
            Payments payments = context.getBean(Payments.class);
            assertThatThrownBy(() -> payments.payAndFail("1")).hasMessage("after the commit");
            assertThatThrownBy(() -> payments.payAndFail("1"))
                    .isInstanceOf(ExecutionRefusedException.class)
                    .hasMessageContaining("outcome-unknown");
        });
    }

    /** It ran for every call, at best with a warning of Spring that its post-processors do not see the bean. */
    @ParameterizedTest
    @ValueSource(
            classes = {
                FirstUserOfPayments.class,
                UserOfPaymentsAndDefinitions.class,
                UserOfPaymentsAndRegistry.class,
                FirstUserOfMadePayments.class
            })
    @DisplayName("P6: a bean that was created too early to be intercepted fails the start")
    void aBeanThatWasCreatedTooEarlyFailsTheStart(Class<?> user) {
        application(user)
                .run(context -> assertThat(context.getStartupFailure())
                        .isInstanceOf(OperationFaultsException.class)
                        .hasMessageContaining("Payments.payAndFail: the bean '")
                        .hasMessageContaining("' is created so early that Spring cannot intercept its calls"));
    }
}
