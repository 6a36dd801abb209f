package io.idempotence.it.client;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.idempotence.client.feign.OutcomeUnknownException;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** {@link AttemptContract}, and what only OkHttp does. */
abstract class OkHttpAttemptContract extends AttemptContract {
    /** It throws while it looks whether to try again by itself, and nobody sees the answer. */
    @ParameterizedTest
    @ValueSource(ints = {408, 503})
    void absurdNumberOfSecondsThatOkHttpCannotReadLeavesADoubt(int status) {
        alwaysGet(status(status).withHeader("Retry-After", "99999999999999999999"));
        Orders orders = orders();
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(OutcomeUnknownException.class);
        assertOneId();
    }
}
