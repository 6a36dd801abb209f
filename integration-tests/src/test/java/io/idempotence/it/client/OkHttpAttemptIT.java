package io.idempotence.it.client;

import feign.Client;

class OkHttpAttemptIT extends AttemptContract {
    @Override
    Client client() {
        return okHttp();
    }
}
