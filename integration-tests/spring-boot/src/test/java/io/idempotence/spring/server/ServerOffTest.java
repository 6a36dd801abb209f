package io.idempotence.spring.server;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.Idempotent;
import io.idempotence.server.Idempotence;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;

/** An application that only calls others switches the server half off. */
@ExtendWith(OutputCaptureExtension.class)
class ServerOffTest {
    @Test
    void anApplicationWithoutAnythingToProtectOpensNoStorage() {
        try (ConfigurableApplicationContext application = new SpringApplicationBuilder(Batch.class)
                .web(WebApplicationType.NONE)
                .properties("spring.profiles.active=prod", "spring.main.banner-mode=off")
                .run()) {
            // A transaction opened a storage, which could fail: the connection then stayed in the thread, and its next
            // transaction was never
            // committed.
            new TransactionTemplate(application.getBean(PlatformTransactionManager.class))
                    .executeWithoutResult(status -> {});
            assertThat(application.getBeanFactory().containsSingleton("idempotenceStorage"))
                    .isFalse();
            assertThat(application.getBean(StorageHealth.class).check().isUp()).isNull();
        }
    }

    @Test
    void whatRunsUnprotectedIsNamedAlsoIfItInheritsItsAnnotation(CapturedOutput output) {
        try (ConfigurableApplicationContext application = new SpringApplicationBuilder(
                        Batch.class, Points.class, Sales.class, SalesFallback.class, Refunds.class)
                .web(WebApplicationType.NONE)
                .properties("idempotence.server.enabled=false", "spring.main.banner-mode=off")
                .run()) {
            assertThat(application.getBean(Points.class).add("order-1")).isEqualTo(1);
            assertThat(output)
                    .contains("idempotence.server.enabled=false:"
                            + " [Points.add, Points.withdraw, Refunds.refund, Sales.sell] run unprotected")
                    .doesNotContain("SalesFallback");
        }
    }

    interface SalesApi {
        @PostMapping("/sales")
        @Idempotent
        String sell();
    }

    @RestController
    static class Sales implements SalesApi {
        @Override
        public String sell() {
            return "sold";
        }
    }

    /** The fallback of a client, whose half is on. */
    static class SalesFallback implements SalesApi {
        @Override
        public String sell() {
            return "sold later";
        }
    }

    interface RefundApi {
        @Idempotent(id = "#order")
        void refund(String order);
    }

    static class Refunds implements RefundApi {
        @Override
        public void refund(String order) {}
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Batch {}

    static class Points {
        private int added;

        @Idempotent(id = "#order")
        int add(String order) {
            return ++added;
        }

        @Idempotent(id = "#order")
        void withdraw(String order) {}

        @Idempotent(false)
        void list() {}
    }

    @Test
    void everythingElseWorksWithoutTheServerHalf(CapturedOutput output) {
        try (ConfigurableApplicationContext application =
                Orders.start("--idempotence.server.enabled=false", "--spring.profiles.active=prod")) {
            assertThat(application.getBeanNamesForType(Idempotence.class)).isEmpty();
            assertThat(output).doesNotContain("unprotected");
            Caller caller = Caller.of(application);
            assertThat(caller.post("/open/orders", "same").body())
                    .isNotEqualTo(caller.post("/open/orders", "same").body());
        }
    }
}
