package io.idempotence.it.client;

import feign.Client;

class DefaultClientAttemptIT extends AttemptContract {
    @Override
    Client client() {
        return new Client.Default(null, null);
    }
}
