package io.idempotence.spring.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.server.Idempotence;
import io.idempotence.server.storage.IdempotenceStorage;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** A parent and a child context that both have the starter. */
@ExtendWith(OutputCaptureExtension.class)
class ParentContextTest {
    @Configuration(proxyBeanMethods = false)
    @ImportAutoConfiguration(IdempotenceServerAutoConfiguration.class)
    static class WithStarter {}

    @Configuration(proxyBeanMethods = false)
    @ImportAutoConfiguration(IdempotenceServerAutoConfiguration.class)
    static class WithStorage {
        @Bean
        IdempotenceStorage ledgerStorage() {
            return IdempotenceStorage.inMemory();
        }
    }

    @Configuration(proxyBeanMethods = false)
    @ImportAutoConfiguration(IdempotenceServerAutoConfiguration.class)
    static class WithIdempotence extends WithStorage {
        @Bean
        Idempotence ledger(IdempotenceStorage ledgerStorage) {
            return Idempotence.over(ledgerStorage);
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class WithoutStarter {
        @Bean
        Idempotence ledger() {
            return Idempotence.over(IdempotenceStorage.inMemory());
        }
    }

    private static ConfigurableApplicationContext start(Class<?> child) {
        return start(WithStarter.class, child);
    }

    private static ConfigurableApplicationContext start(Class<?> parent, Class<?> child) {
        return new SpringApplicationBuilder(parent)
                .web(WebApplicationType.NONE)
                .properties("spring.main.banner-mode=off", "idempotence.server.storage=memory")
                .child(child)
                .web(WebApplicationType.NONE)
                .run();
    }

    @Test
    void aChildUsesTheStorageOfItsParent() {
        try (ConfigurableApplicationContext child = start(WithStarter.class)) {
            assertThat(child.getBean(Idempotence.class))
                    .isSameAs(child.getParent().getBean(Idempotence.class));
        }
    }

    /** P6: it was ignored, and the records were in the storage of the parent. */
    @Test
    void aStorageOfTheChildThatNothingUsesFailsTheStart(CapturedOutput output) {
        assertThatThrownBy(() -> start(WithStorage.class).close()).isNotNull();

        assertThat(output)
                .contains("'ledgerStorage'", "'idempotence'", "parent context")
                .contains("Action:", "bean of Idempotence");
    }

    /** The storage that the starter declares in the child is not the application's, and is never made. */
    @Test
    void aParentMayHaveAnIdempotenceWithoutAStorageBean() {
        try (ConfigurableApplicationContext child = start(WithoutStarter.class, WithStarter.class)) {
            assertThat(child.getBean(Idempotence.class))
                    .isSameAs(child.getParent().getBean(Idempotence.class));
        }
    }

    @Test
    void aChildMayHaveAnIdempotenceOfItsOwn() {
        try (ConfigurableApplicationContext child = start(WithIdempotence.class)) {
            assertThat(child.getBean(Idempotence.class))
                    .isNotSameAs(child.getParent().getBean(Idempotence.class));
        }
    }
}
