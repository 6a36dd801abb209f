package io.idempotence.it.client;

import feign.BaseBuilder;
import feign.Client;
import feign.Feign;

class DefaultClientOneCallOneIdIT extends OneCallOneIdContract {
    @Override
    BaseBuilder<?, ?> builder() {
        return Feign.builder().client(new Client.Default(null, null));
    }
}
