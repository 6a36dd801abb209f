package io.idempotence.it.client;

import feign.Client;

class DefaultClientOneCallOneIdIT extends OneCallOneIdContract {
    @Override
    Client client() {
        return new Client.Default(null, null);
    }
}
