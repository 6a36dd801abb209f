package io.idempotence.spring.method;

import io.idempotence.spring.internal.ConditionalOnSwitch;
import io.idempotence.spring.server.IdempotenceServerAutoConfiguration;
import org.springframework.aop.config.AopConfigUtils;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.beans.factory.support.BeanDefinitionRegistry;
import org.springframework.boot.LazyInitializationExcludeFilter;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.AutoConfigureOrder;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.context.annotation.ImportBeanDefinitionRegistrar;
import org.springframework.context.annotation.Lazy;
import org.springframework.context.annotation.Role;
import org.springframework.core.Ordered;
import org.springframework.core.env.Environment;
import org.springframework.core.type.AnnotationMetadata;
import org.springframework.transaction.TransactionExecutionListener;
import org.springframework.util.ClassUtils;
import org.springframework.util.function.SingletonSupplier;
import org.springframework.web.servlet.HandlerExceptionResolver;
import org.springframework.web.servlet.handler.MappedInterceptor;
import org.springframework.web.servlet.mvc.method.RequestMappingInfoHandlerMapping;

/**
 * The auto-configuration of {@code @Idempotent} on handlers of Spring MVC and on bean methods, and of transactions.
 *
 * <p>It applies unless {@code idempotence.server.enabled} is false. An annotation that cannot work fails the start. Every method with one is
 * in the bean {@link IdempotentOperations}.
 *
 * <p>With Spring's transactions, every {@code ConfigurableTransactionManager} that is a bean reports its commits: after one, an ID is not
 * released. {@code idempotence.transactions.never-release-after-commit=false} switches that off.
 */
@AutoConfiguration(after = IdempotenceServerAutoConfiguration.class)
@AutoConfigureOrder(Ordered.LOWEST_PRECEDENCE) // so that all others keep their places
@ConditionalOnSwitch("idempotence.server.enabled")
@Import(IdempotenceMethodAutoConfiguration.ProxyCreator.class)
public class IdempotenceMethodAutoConfiguration {
    @Bean
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    static OperationSources idempotenceOperationSources(
            ConfigurableListableBeanFactory beans, Environment environment) {
        return new OperationSources(beans, environment);
    }

    @Bean
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    static BeanOperations idempotenceBeanOperations(OperationSources sources) {
        return new BeanOperations(sources);
    }

    /** Shared with a parent context, whose transaction managers report to its own one. */
    @Bean
    @ConditionalOnMissingBean
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    static UnattributedCommits idempotenceUnattributedCommits() {
        return new UnattributedCommits();
    }

    /** Never lazy: until it has found the handlers, they are not protected. */
    @Bean
    @Lazy(false)
    IdempotentOperations idempotentOperations(
            BeanOperations methods, ObjectProvider<HandlerOperations> handlers, OperationSources sources) {
        return new FoundOperations(methods, handlers.getIfAvailable(), sources);
    }

    @Bean
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    static IdempotentAdvisor idempotentAdvisor(
            BeanOperations operations,
            OperationSources sources,
            ObjectProvider<SurroundingTransaction> transactions,
            UnattributedCommits commits) {
        return new IdempotentAdvisor(
                operations,
                new IdempotentInterceptor(
                        operations,
                        sources,
                        transactions.getIfAvailable(SurroundingTransaction.NoTransaction::new),
                        commits));
    }

    /** Makes sure that beans are proxied, as Spring Boot does unless it is configured otherwise. */
    static final class ProxyCreator implements ImportBeanDefinitionRegistrar {
        private final Environment environment;

        ProxyCreator(Environment environment) {
            this.environment = environment;
        }

        @Override
        public void registerBeanDefinitions(AnnotationMetadata importing, BeanDefinitionRegistry registry) {
            AopConfigUtils.registerAutoProxyCreatorIfNecessary(registry);
            if (environment.getProperty("spring.aop.auto", Boolean.class, true)
                    && environment.getProperty("spring.aop.proxy-target-class", Boolean.class, true)) {
                AopConfigUtils.forceAutoProxyCreatorToUseClassProxying(registry);
            }
        }
    }

    /** Handlers of Spring MVC. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
    @ConditionalOnClass(RequestMappingInfoHandlerMapping.class)
    static class Handlers {
        @Bean
        HandlerOperations idempotenceHandlerOperations(ApplicationContext context, OperationSources sources) {
            return new HandlerOperations(context, sources);
        }

        @Bean
        MappedInterceptor idempotenceCoverageGuard(HandlerOperations operations) {
            return new MappedInterceptor(null, new CoverageGuard(operations));
        }

        /** Every mapping applies it, also of functional endpoints and of an application that configures Spring MVC itself. */
        @Bean
        MappedInterceptor idempotenceAsyncExecutions(UnattributedCommits commits) {
            return new MappedInterceptor(null, new AsyncExecutions(commits));
        }

        /** If it were the only resolver, the DispatcherServlet would do without its own ones. */
        @Bean
        @ConditionalOnBean(HandlerExceptionResolver.class)
        RenderedExceptions idempotenceRenderedExceptions() {
            return new RenderedExceptions();
        }
    }

    /** Transactions. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(TransactionExecutionListener.class)
    @EnableConfigurationProperties(IdempotenceTransactionProperties.class)
    static class Transactions {
        @Bean
        @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
        static AppliedMarks idempotenceAppliedMarks(ConfigurableListableBeanFactory beans) {
            boolean hasJdbc = ClassUtils.isPresent(
                    "org.springframework.jdbc.datasource.DataSourceUtils", beans.getBeanClassLoader());
            return hasJdbc ? new JdbcAppliedMarks(beans) : new AppliedMarks.NoMarks();
        }

        @Bean
        @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
        static TransactionEffects idempotenceTransactionEffects(
                AppliedMarks marks,
                UnattributedCommits commits,
                ObjectProvider<IdempotenceTransactionProperties> properties) {
            // Read at the first commit, because post-processors need this bean before others may be made.
            return new TransactionEffects(
                    marks,
                    commits,
                    SingletonSupplier.of(() -> properties.getObject().neverReleaseAfterCommit()));
        }

        @Bean
        @Lazy(false)
        static SmartInitializingSingleton idempotenceAppliedMarksCheck(AppliedMarks marks, OperationSources sources) {
            return () -> marks.check(sources.properties());
        }

        @Bean
        @Lazy(false)
        static UnusedTaskDecorators idempotenceUnusedTaskDecorators(ListableBeanFactory beans) {
            return new UnusedTaskDecorators(beans);
        }

        /** A wrong property fails the start, not the first commit. */
        @Bean
        static LazyInitializationExcludeFilter idempotenceTransactionPropertiesAreNeverLazy() {
            return LazyInitializationExcludeFilter.forBeanTypes(IdempotenceTransactionProperties.class);
        }

        @Bean
        @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
        static TransactionManagers idempotenceTransactionManagers(
                TransactionEffects effects, ConfigurableListableBeanFactory beans) {
            return new TransactionManagers(effects, beans);
        }

        @Bean
        @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
        static SurroundingTransaction idempotenceSurroundingTransaction(TransactionEffects effects) {
            return new SurroundingTransaction.OfSpring(effects);
        }
    }
}
