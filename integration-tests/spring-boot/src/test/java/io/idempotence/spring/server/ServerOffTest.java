package io.idempotence.spring.server;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.server.Idempotence;
import org.junit.jupiter.api.Test;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;

/** An application that only calls others switches the provider half off. */
class ServerOffTest {
    @Test
    void anApplicationWithoutAnythingToProtectOpensNoStorage() {
        try (ConfigurableApplicationContext application = new SpringApplicationBuilder(Batch.class)
                .web(WebApplicationType.NONE)
                .properties("spring.profiles.active=prod", "spring.main.banner-mode=off")
                .run()) {
            assertThat(application.getBeanFactory().containsSingleton("idempotenceStorage"))
                    .isFalse();
            assertThat(application.getBean(StorageHealth.class).check().isUp()).isNull();
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Batch {}

    @Test
    void everythingElseWorksWithoutTheProviderHalf() {
        try (ConfigurableApplicationContext application =
                Orders.start("--idempotence.server.enabled=false", "--spring.profiles.active=prod")) {
            assertThat(application.getBeanNamesForType(Idempotence.class)).isEmpty();
            Caller caller = Caller.of(application);
            assertThat(caller.post("/open/orders", "same").body())
                    .isNotEqualTo(caller.post("/open/orders", "same").body());
        }
    }
}
