package io.idempotence.it.client;

import feign.AsyncClient;
import feign.AsyncFeign;
import feign.BaseBuilder;
import feign.Client;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.AfterEach;

/** A thread waits where the caller does not. */
class AsyncDefaultClientOneCallOneIdIT extends OneCallOneIdContract {
    private final ExecutorService threads = Executors.newCachedThreadPool();

    @AfterEach
    void stopThreads() {
        threads.shutdownNow();
    }

    @Override
    BaseBuilder<?, ?> builder() {
        return AsyncFeign.builder().client(new AsyncClient.Default<>(new Client.Default(null, null), threads));
    }
}
