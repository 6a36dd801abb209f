package io.idempotence.it.client;

import feign.AsyncFeign;
import feign.BaseBuilder;

/** {@link OneCallOneIdContract} for futures, with Feign's client for OkHttp, which is asynchronous as well. */
class AsyncOkHttpOneCallOneIdIT extends OneCallOneIdContract {
    @Override
    BaseBuilder<?, ?> builder() {
        return AsyncFeign.builder().client(okHttp());
    }
}
