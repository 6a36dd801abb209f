package io.idempotence.it.client;

import feign.AsyncFeign;
import feign.BaseBuilder;

/** Feign's own client for OkHttp is one that responds later as well. */
class AsyncOkHttpOneCallOneIdIT extends OneCallOneIdContract {
    @Override
    BaseBuilder<?, ?> builder() {
        return AsyncFeign.builder().client(okHttp());
    }
}
