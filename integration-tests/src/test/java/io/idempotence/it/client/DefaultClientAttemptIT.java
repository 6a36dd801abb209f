package io.idempotence.it.client;

import feign.BaseBuilder;
import feign.Client;
import feign.Feign;

class DefaultClientAttemptIT extends AttemptContract {
    @Override
    BaseBuilder<?, ?> builder() {
        return Feign.builder().client(new Client.Default(null, null));
    }

    @Override
    boolean noticesCutHeaders() {
        return false;
    }
}
