package io.idempotence.spring.server;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.server.Idempotence;
import org.junit.jupiter.api.Test;
import org.springframework.context.ConfigurableApplicationContext;

/** An application that only calls others switches the provider half off. */
class ServerOffTest {
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
