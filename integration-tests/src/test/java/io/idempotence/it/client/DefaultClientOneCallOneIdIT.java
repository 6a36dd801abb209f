package io.idempotence.it.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import feign.BaseBuilder;
import feign.Client;
import feign.Feign;
import feign.FeignException;
import feign.Response;
import io.idempotence.client.IdempotenceClientConfigBuilder;
import io.idempotence.client.IdempotenceClientEvent.Result;
import io.idempotence.client.OutcomeUnknown;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class DefaultClientOneCallOneIdIT extends OneCallOneIdContract {
    private static final Duration DEADLINE = Duration.ofMillis(2_500);

    @Override
    BaseBuilder<?, ?> builder() {
        return Feign.builder().client(new Client.Default(null, null));
    }

    private Orders ordersWhoseResponsesMeet(Runnable after, IdempotenceClientConfigBuilder config) {
        Client client = new Client.Default(null, null);
        return target(install(
                Feign.builder().client((request, options) -> {
                    Response response = client.execute(request, options);
                    after.run();
                    return response;
                }),
                config.build()));
    }

    @Test
    void redirectOfAnInterruptedCallerIsNotFollowed() throws Exception {
        alwaysGet(status(307).withHeader("Location", "/v2"));
        Orders orders = ordersWhoseResponsesMeet(() -> Thread.currentThread().interrupt(), fast());
        InterruptedCaller caller = new InterruptedCaller(() -> orders.create("x"));
        assertThat(caller.thrown()).isInstanceOf(FeignException.class);
        assertThat(caller.keptItsFlag()).isTrue();
        assertThat(received()).hasSize(1);
    }

    /** And what comes after the deadline is no response any more. */
    @ParameterizedTest
    @ValueSource(ints = {307, 303})
    void redirectAfterTheDeadlineIsNotFollowed(int status) {
        // The first call loads classes, which may take longer than the deadline.
        orders().create("warm-up");
        forget();
        alwaysGet(status(status).withHeader("Location", "/v2"));
        Orders orders = ordersWhoseResponsesMeet(
                () -> await().pollDelay(DEADLINE).until(() -> true), fast().deadline(DEADLINE));
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(OutcomeUnknown.class);
        assertEnd(Result.UNKNOWN, 1);
        assertThat(received()).hasSize(1);
    }
}
