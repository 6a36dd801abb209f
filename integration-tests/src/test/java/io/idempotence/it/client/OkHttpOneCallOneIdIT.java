package io.idempotence.it.client;

import feign.Client;

class OkHttpOneCallOneIdIT extends OneCallOneIdContract {
    @Override
    Client client() {
        return okHttp();
    }
}
