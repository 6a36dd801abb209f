package io.idempotence.it.client;

import feign.AsyncFeign;
import feign.BaseBuilder;

/** A thread waits where the caller does not. */
class AsyncDefaultClientOneCallOneIdIT extends OneCallOneIdContract {
    @Override
    BaseBuilder<?, ?> builder() {
        return AsyncFeign.builder().client(waitingClient());
    }

    @Override
    boolean makesAGetOfARedirectedPost() {
        return false;
    }
}
