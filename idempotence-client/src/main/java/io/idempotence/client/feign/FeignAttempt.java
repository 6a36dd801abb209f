package io.idempotence.client.feign;

import feign.Response;
import io.idempotence.client.retry.Observation;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** One exchange of a call, as interceptor and client see it. */
final class FeignAttempt {
    private final FeignCall call;
    private final int number;
    private final Observation seen;
    private volatile boolean prepared;
    private volatile @Nullable CompletableFuture<Response> wire;

    FeignAttempt(FeignCall call, int number, Observation seen) {
        this.call = call;
        this.number = number;
        this.seen = seen;
    }

    FeignCall call() {
        return call;
    }

    int number() {
        return number;
    }

    Observation seen() {
        return seen;
    }

    void prepared() {
        prepared = true;
    }

    boolean isPrepared() {
        return prepared;
    }

    /** The request is out, and this is where its answer comes in. */
    void sent(CompletableFuture<Response> response) {
        wire = response;
    }

    /** Nobody waits for the answer any more. */
    void abort() {
        CompletableFuture<Response> response = wire;
        if (response != null) {
            response.cancel(true);
        }
    }
}
