package io.idempotence.it.client;

import feign.AsyncFeign;
import feign.BaseBuilder;

/** {@link OneCallOneIdContract} for futures over Feign's default client: a thread of the client waits, not the caller. */
class AsyncDefaultClientOneCallOneIdIT extends OneCallOneIdContract {
    @Override
    BaseBuilder<?, ?> builder() {
        return AsyncFeign.builder().client(waitingClient());
    }
}
