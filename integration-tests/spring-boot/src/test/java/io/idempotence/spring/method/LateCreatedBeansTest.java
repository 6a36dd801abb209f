package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.Idempotent;
import java.util.concurrent.atomic.AtomicInteger;
import org.aspectj.lang.annotation.Aspect;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.aop.support.AopUtils;
import org.springframework.beans.factory.FactoryBean;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.beans.factory.config.AutowireCapableBeanFactory;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.DependsOn;
import org.springframework.context.annotation.EnableAspectJAutoProxy;
import org.springframework.context.annotation.Lazy;
import org.springframework.context.annotation.Scope;
import org.springframework.core.PriorityOrdered;

/** Beans that are created after the start, or once for each use. */
class LateCreatedBeansTest {
    @Aspect
    static class Auditor {
        @Idempotent(id = "#id")
        public String audit(String id) {
            return id;
        }
    }

    static class AuditorFactory implements FactoryBean<Object> {
        @Override
        public Object getObject() {
            return new Auditor();
        }

        @Override
        public Class<?> getObjectType() {
            return Object.class;
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAspectJAutoProxy
    static class LazyAspect {
        @Bean
        @Lazy
        Auditor auditor() {
            return new Auditor();
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAspectJAutoProxy
    static class AspectForEachUse {
        @Bean
        @Scope("prototype")
        Auditor auditor() {
            return new Auditor();
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAspectJAutoProxy
    static class LazyFactoryOfAspect {
        @Bean
        @Lazy
        AuditorFactory auditor() {
            return new AuditorFactory();
        }
    }

    /** It ran for every call, without a word. */
    @ParameterizedTest
    @ValueSource(classes = {LazyAspect.class, AspectForEachUse.class, LazyFactoryOfAspect.class})
    @DisplayName("P6: a bean that is not intercepted fails its creation after the start")
    void aBeanThatIsNotInterceptedFailsItsCreation(Class<?> configuration) {
        ContextHierarchyTest.application(configuration).run(context -> {
            assertThat(context).hasNotFailed();
            for (int time = 1; time <= 2; time++) {
                assertThatThrownBy(() -> context.getBean("auditor"))
                        .hasRootCauseInstanceOf(OperationFaultsException.class)
                        .rootCause()
                        .hasMessage(
                                "Auditor.audit: the bean 'auditor' is of a kind whose calls Spring does not intercept,"
                                        + " such as an aspect. Move @Idempotent with its id to a method of another bean.");
            }
        });
    }

    @Configuration(proxyBeanMethods = false)
    static class UserOfAspect extends AspectForEachUse {
        @Bean
        Object user(Auditor auditor) {
            return "uses " + auditor;
        }
    }

    @Test
    @DisplayName("P6: a bean that is created for each use, and is not intercepted, fails the start that uses it")
    void aBeanForEachUseThatIsNotInterceptedFailsTheStart() {
        ContextHierarchyTest.application(UserOfAspect.class)
                .run(context -> assertThat(context.getStartupFailure())
                        .isInstanceOf(OperationFaultsException.class)
                        .hasMessageContaining("Auditor.audit: the bean 'auditor' is of a kind"));
    }

    static class Counter {
        private static final AtomicInteger COUNTED = new AtomicInteger();

        @Idempotent(id = "#id")
        public String count(String id) {
            return id + COUNTED.incrementAndGet();
        }
    }

    static class FirstUser implements BeanPostProcessor, PriorityOrdered {
        FirstUser(Object used) {}

        @Override
        public int getOrder() {
            return 0;
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class CounterForEachUse {
        @Bean
        @Scope("prototype")
        Counter counter() {
            return new Counter();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class FirstUserOfCounter extends CounterForEachUse {
        @Bean
        static FirstUser first(Counter counter) {
            return new FirstUser(counter);
        }

        /** Gets another one, which is intercepted. */
        @Bean
        Object second(Counter counter) {
            return "uses " + counter;
        }
    }

    @Test
    @DisplayName("P6: a bean that is created for each use, once too early to be intercepted, fails the start")
    void aBeanForEachUseThatWasCreatedTooEarlyFailsTheStart() {
        ContextHierarchyTest.application(FirstUserOfCounter.class)
                .run(context -> assertThat(context.getStartupFailure())
                        .isInstanceOf(OperationFaultsException.class)
                        .hasMessageContaining("Counter.count: the bean 'counter' is created so early"));
    }

    static class LaterUser implements BeanPostProcessor {
        LaterUser(Counter counter) {
            assertThat(counter.count("early")).isEqualTo(counter.count("early"));
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class LaterUserOfCounter extends CounterForEachUse {
        @Bean
        static LaterUser user(Counter counter) {
            return new LaterUser(counter);
        }
    }

    /** It uses a bean that uses it. That one gets the proxy before this one is initialized. */
    static class CounterInCycle extends Counter {
        @Autowired
        private UserInCycle user;
    }

    static class UserInCycle {
        @Autowired
        private Counter counter;
    }

    @Configuration(proxyBeanMethods = false)
    static class LazyCycle {
        @Bean
        @Lazy
        CounterInCycle counter() {
            return new CounterInCycle();
        }

        @Bean
        @Lazy
        UserInCycle user() {
            return new UserInCycle();
        }
    }

    static class CounterFactory implements FactoryBean<Counter> {
        @Override
        public Counter getObject() {
            return new Counter();
        }

        @Override
        public Class<?> getObjectType() {
            return Counter.class;
        }

        @Override
        public boolean isSingleton() {
            return false;
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class LazyFactory {
        @Bean
        @Lazy
        CounterFactory counter() {
            return new CounterFactory();
        }
    }

    @ParameterizedTest
    @ValueSource(classes = {CounterForEachUse.class, LaterUserOfCounter.class, LazyFactory.class, LazyCycle.class})
    void aBeanThatIsInterceptedIsNoMistake(Class<?> configuration) {
        ContextHierarchyTest.application(configuration)
                .withAllowCircularReferences(true)
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    for (int time = 1; time <= 2; time++) {
                        Counter counter = context.getBean(Counter.class);
                        assertThat(counter.count("id")).isEqualTo(counter.count("id"));
                    }
                });
    }

    /** As Spring prepares the instance of a test. Its calls are those of the same object. */
    @Test
    void anInstanceThatIsNoBeanIsNoMistake() {
        ContextHierarchyTest.application().run(context -> {
            Counter instance = new Counter();
            assertThat(context.getAutowireCapableBeanFactory()
                            .initializeBean(
                                    instance,
                                    Counter.class.getName() + AutowireCapableBeanFactory.ORIGINAL_INSTANCE_SUFFIX))
                    .isSameAs(instance);
            assertThat(AopUtils.isAopProxy(context.getAutowireCapableBeanFactory()
                            .initializeBean(new Counter(), Counter.class.getName())))
                    .isTrue();
        });
    }

    /** Delegates to what it wraps, as the subclasses that measure or trace do. */
    static class MeasuredCounter extends Counter {
        private final Counter measured;

        MeasuredCounter(Counter measured) {
            this.measured = measured;
        }

        @Override
        public String count(String id) {
            return measured.count(id);
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class WrappedCounters {
        @Bean
        static BeanPostProcessor measuring() {
            return new BeanPostProcessor() {
                @Override
                public Object postProcessAfterInitialization(Object bean, String beanName) {
                    return bean instanceof Counter counter ? new MeasuredCounter(counter) : bean;
                }
            };
        }

        @Bean
        Counter counter() {
            return new Counter();
        }

        @Bean
        @Lazy
        Counter lazyCounter() {
            return new Counter();
        }

        @Bean
        @Lazy
        @DependsOn("lazyCounter")
        Object dependent() {
            return "depends on a lazy counter";
        }

        @Bean
        @Scope("prototype")
        Counter counterForEachUse() {
            return new Counter();
        }
    }

    @Test
    void aBeanThatIsWrappedBehindItsProxyIsIntercepted() {
        ContextHierarchyTest.application(WrappedCounters.class).run(context -> {
            assertThat(context).hasNotFailed();
            assertThat(context.getBean("dependent")).isNotNull();
            for (String name : new String[] {"counter", "lazyCounter", "counterForEachUse"}) {
                Counter counter = context.getBean(name, Counter.class);
                assertThat(counter).isExactlyInstanceOf(MeasuredCounter.class);
                assertThat(counter.count(name)).isEqualTo(counter.count(name));
            }
        });
    }
}
