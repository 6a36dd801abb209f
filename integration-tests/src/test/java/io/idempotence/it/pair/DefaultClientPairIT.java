package io.idempotence.it.pair;

import feign.Client;

class DefaultClientPairIT extends PairContract {
    @Override
    Client client() {
        return new Client.Default(null, null);
    }
}
