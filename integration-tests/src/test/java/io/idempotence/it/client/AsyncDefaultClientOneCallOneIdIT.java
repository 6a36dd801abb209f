package io.idempotence.it.client;

import feign.AsyncFeign;
import feign.BaseBuilder;
import org.junit.jupiter.api.Tag;

/** {@link OneCallOneIdContract} for futures over Feign's default client: a thread of the client waits, not the caller. */
@Tag("all") // of the futures, AsyncOkHttpOneCallOneIdIT always runs
class AsyncDefaultClientOneCallOneIdIT extends OneCallOneIdContract {
    @Override
    BaseBuilder<?, ?> builder() {
        return AsyncFeign.builder().client(waitingClient());
    }
}
