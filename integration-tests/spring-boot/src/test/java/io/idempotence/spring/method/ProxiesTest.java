package io.idempotence.spring.method;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.Idempotent;
import io.idempotence.spring.server.IdempotenceServerAutoConfiguration;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.aop.support.AopUtils;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;

/** Beans get the kind of proxy that the application has chosen. */
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
}
