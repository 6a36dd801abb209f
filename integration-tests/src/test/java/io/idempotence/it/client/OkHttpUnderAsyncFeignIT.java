package io.idempotence.it.client;

import feign.AsyncFeign;
import feign.BaseBuilder;
import feign.Client;

/** {@link OkHttpUnderFeignIT} with futures: a thread of an executor sends, and the caller does not wait. */
class OkHttpUnderAsyncFeignIT extends OkHttpUnderFeignIT {
    @Override
    BaseBuilder<?, ?> feign(Client under) {
        return AsyncFeign.builder().client(waitingFor(under));
    }
}
