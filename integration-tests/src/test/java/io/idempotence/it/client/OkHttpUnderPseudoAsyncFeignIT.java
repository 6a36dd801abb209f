package io.idempotence.it.client;

import feign.AsyncClient;
import feign.AsyncFeign;
import feign.BaseBuilder;
import feign.Client;

/** {@link OkHttpUnderFeignIT} with futures that are complete: the caller's thread sends. */
class OkHttpUnderPseudoAsyncFeignIT extends OkHttpUnderFeignIT {
    @Override
    BaseBuilder<?, ?> feign(Client under) {
        return AsyncFeign.builder().client(new AsyncClient.Pseudo<>(under));
    }
}
