package io.idempotence.it.pair;

import feign.Client;
import org.junit.jupiter.api.Tag;

@Tag("all") // DefaultClientPairIT is the same pair, and OkHttpInterceptorPairIT another one over OkHttp
class OkHttpPairIT extends PairContract {
    @Override
    Client client() {
        return okHttp();
    }
}
