package io.idempotence.it.client;

import feign.AsyncClient;
import feign.AsyncFeign;
import feign.BaseBuilder;
import feign.Client;

/** The caller's thread sends, although the response is a future. */
class OkHttpUnderPseudoAsyncFeignIT extends OkHttpUnderFeignIT {
    @Override
    BaseBuilder<?, ?> feign(Client under) {
        return AsyncFeign.builder().client(new AsyncClient.Pseudo<>(under));
    }
}
