package io.idempotence.it.client;

import feign.AsyncFeign;
import feign.BaseBuilder;
import feign.Client;

/** A thread of an executor sends what Feign's caller does not wait for. */
class OkHttpUnderAsyncFeignIT extends OkHttpUnderFeignIT {
    @Override
    BaseBuilder<?, ?> feign(Client under) {
        return AsyncFeign.builder().client(waitingFor(under));
    }
}
