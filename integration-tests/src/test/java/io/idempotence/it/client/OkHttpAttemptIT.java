package io.idempotence.it.client;

import feign.BaseBuilder;
import feign.Feign;

class OkHttpAttemptIT extends AttemptContract {
    @Override
    BaseBuilder<?, ?> builder() {
        return Feign.builder().client(okHttp());
    }
}
