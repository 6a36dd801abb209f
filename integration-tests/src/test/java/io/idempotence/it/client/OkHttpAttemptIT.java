package io.idempotence.it.client;

import feign.BaseBuilder;
import feign.Feign;

class OkHttpAttemptIT extends OkHttpAttemptContract {
    @Override
    BaseBuilder<?, ?> builder() {
        return Feign.builder().client(okHttp());
    }
}
