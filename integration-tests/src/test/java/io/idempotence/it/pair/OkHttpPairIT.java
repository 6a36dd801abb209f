package io.idempotence.it.pair;

import feign.Client;

class OkHttpPairIT extends PairContract {
    @Override
    Client client() {
        return okHttp();
    }
}
