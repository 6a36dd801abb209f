package io.idempotence.it.client;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import feign.AsyncFeign;
import feign.BaseBuilder;
import io.idempotence.client.feign.OutcomeUnknownException;
import java.util.concurrent.CancellationException;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Feign's own client for OkHttp is one that answers later as well. */
class AsyncOkHttpAttemptIT extends AttemptContract {
    @Override
    BaseBuilder<?, ?> builder() {
        return AsyncFeign.builder().client(okHttp());
    }

    /** It waits for a future, and cancels it. */
    @Override
    Class<? extends Throwable> whatInterruptedCallersSee() {
        return CancellationException.class;
    }

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
