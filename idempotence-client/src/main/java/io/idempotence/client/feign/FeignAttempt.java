package io.idempotence.client.feign;

import io.idempotence.client.retry.Observation;

/** One exchange of a call, as interceptor and client see it. */
final class FeignAttempt {
    private final FeignCall call;
    private final int number;
    private final Observation seen;
    private volatile boolean prepared;

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
}
