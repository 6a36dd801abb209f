package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.Idempotent;
import io.idempotence.spring.server.IdempotenceServerAutoConfiguration;
import java.lang.reflect.Proxy;
import java.util.concurrent.atomic.AtomicInteger;
import org.aspectj.lang.annotation.Aspect;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.aop.framework.autoproxy.DefaultAdvisorAutoProxyCreator;
import org.springframework.aop.support.AopUtils;
import org.springframework.beans.factory.FactoryBean;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.EnableAspectJAutoProxy;
import org.springframework.context.annotation.Scope;
import org.springframework.context.annotation.ScopedProxyMode;

/** The kind of proxy that beans get: the one that the application has chosen. */
class ProxiesTest {
    interface Payments {
        String pay(String id);
    }

    static class CardPayments implements Payments {
        private int paid;

        @Override
        @Idempotent(id = "#id")
        public String pay(String id) {
            return id + ++paid;
        }
    }

    /** Like a repository or a client: an interface without a class. */
    private static Payments withoutAClass() {
        return (Payments) Proxy.newProxyInstance(
                Payments.class.getClassLoader(),
                new Class<?>[] {PaymentsClient.class},
                (proxy, method, args) ->
                        method.getDeclaringClass() == Object.class ? method.invoke("client", args) : "paid");
    }

    interface PaymentsClient extends Payments {
        @Override
        @Idempotent(id = "#id")
        String pay(String id);
    }

    static class ClientFactory implements FactoryBean<Payments> {
        @Override
        public Payments getObject() {
            return withoutAClass();
        }

        @Override
        public Class<?> getObjectType() {
            return Payments.class;
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class OfMethod {
        @Bean
        Payments client() {
            return withoutAClass();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class OfFactory {
        @Bean
        ClientFactory client() {
            return new ClientFactory();
        }

        @Bean
        Object user(Payments client) {
            return "uses " + client.pay("1");
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Scoped {
        @Bean
        @Scope(scopeName = "prototype", proxyMode = ScopedProxyMode.INTERFACES)
        Payments payments() {
            return new ClientOfAClass();
        }
    }

    static class ClientOfAClass implements PaymentsClient {
        private static final AtomicInteger PAID = new AtomicInteger();

        @Override
        public String pay(String id) {
            return id + PAID.incrementAndGet();
        }
    }

    private static ApplicationContextRunner application() {
        return new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(
                        IdempotenceServerAutoConfiguration.class, IdempotenceMethodAutoConfiguration.class))
                .withPropertyValues("idempotence.server.storage=memory");
    }

    @ParameterizedTest
    @ValueSource(classes = {OfMethod.class, OfFactory.class})
    void aProxyWithoutAClassFailsTheStartInsteadOfRunningUnprotected(Class<?> configuration) {
        application().withUserConfiguration(configuration).run(context -> {
            assertThat(context).hasFailed();
            FailureAnalysis analysis = new OperationFaultsFailureAnalyzer().analyze(context.getStartupFailure());
            assertThat(analysis).isNotNull();
            assertThat(analysis.getDescription())
                    .contains("PaymentsClient.pay: the bean 'client' is a proxy without a class");
            assertThat(analysis.getAction()).contains("a class of your own that calls it");
        });
    }

    static class MistakenPayments {
        @Idempotent(id = "#id")
        public final String pay(String id) {
            return id;
        }

        @Idempotent
        public String refund(String id) {
            return id;
        }
    }

    static class MistakenFactory implements FactoryBean<MistakenPayments> {
        @Override
        public MistakenPayments getObject() {
            return new MistakenPayments();
        }

        @Override
        public Class<?> getObjectType() {
            return MistakenPayments.class;
        }
    }

    record UserOfMistakes(MistakenPayments payments) {}

    /** Both methods ran for every call. */
    @Test
    void aMistakeInWhatAFactoryMakesFailsTheStart() {
        application()
                .withBean("payments", MistakenFactory.class)
                .withBean(UserOfMistakes.class)
                .run(context -> assertThat(context.getStartupFailure())
                        .hasMessageContaining("MistakenPayments.pay: it is final")
                        .hasMessageContaining("MistakenPayments.refund: it is in no handler mapping"));
    }

    @Aspect
    static class Auditor {
        @Idempotent(id = "#id")
        public String audit(String id) {
            return id;
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAspectJAutoProxy
    static class WithAspects {
        @Bean
        Auditor auditor() {
            return new Auditor();
        }
    }

    /** The method ran for every call. */
    @Test
    void anAspectIsNotInterceptedAndFailsTheStart() {
        application()
                .withUserConfiguration(WithAspects.class)
                .run(context -> assertThat(context.getStartupFailure())
                        .hasMessageContaining(
                                "Auditor.audit: the bean 'auditor' is of a kind whose calls Spring does not"
                                        + " intercept, such as an aspect"));
    }

    @Test
    void aScopedProxyOfABeanIsNoMistake() {
        application().withUserConfiguration(Scoped.class).run(context -> {
            Payments payments = context.getBean(Payments.class);
            assertThat(payments.pay("scoped")).isEqualTo(payments.pay("scoped"));
        });
    }

    @ParameterizedTest
    @CsvSource({
        "spring.aop.auto=true, true",
        "spring.aop.auto=false, false",
        "spring.aop.proxy-target-class=false, false"
    })
    void aBeanGetsTheKindOfProxyThatTheApplicationHasChosen(String property, boolean ofClass) {
        new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(
                        IdempotenceServerAutoConfiguration.class, IdempotenceMethodAutoConfiguration.class))
                .withBean("payments", CardPayments.class)
                .withPropertyValues("idempotence.server.storage=memory", property)
                .run(context -> {
                    Payments payments = context.getBean(Payments.class);
                    assertThat(AopUtils.isCglibProxy(payments)).isEqualTo(ofClass);
                    assertThat(payments.pay("id")).isEqualTo("id1");
                    assertThat(payments.pay("id")).isEqualTo("id1");
                });
    }

    @Configuration(proxyBeanMethods = false)
    static class SecondCreator {
        @Bean
        static DefaultAdvisorAutoProxyCreator secondCreator() {
            DefaultAdvisorAutoProxyCreator creator = new DefaultAdvisorAutoProxyCreator();
            creator.setProxyTargetClass(true);
            return creator;
        }
    }

    /** As in an application with Shiro. The inner proxy waited for the outer one, and then refused every call. */
    @Test
    void aBeanInTwoProxiesRunsOnce() {
        application()
                .withUserConfiguration(SecondCreator.class)
                .withBean("payments", CardPayments.class)
                .withPropertyValues("idempotence.server.max-wait=0s")
                .run(context -> {
                    Payments payments = context.getBean(Payments.class);
                    assertThat(payments.pay("id")).isEqualTo("id1");
                    assertThat(payments.pay("id")).isEqualTo("id1");
                });
    }
}
