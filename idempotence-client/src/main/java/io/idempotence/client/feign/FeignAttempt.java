package io.idempotence.client.feign;

import feign.RequestTemplate;
import feign.Response;
import io.idempotence.client.internal.http.Observation;
import io.idempotence.client.internal.http.Watchdog;
import io.idempotence.client.internal.http.Watchdog.Watch;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** One exchange of a call, as interceptor and client see it. */
final class FeignAttempt {
    private final FeignCall call;
    private final int number;
    private final Observation seen;
    private final Watchdog watchdog;
    private volatile @Nullable RequestTemplate prepared;
    private volatile @Nullable CompletableFuture<Response> wire;
    private volatile @Nullable Watch watch;

    FeignAttempt(FeignCall call, int number, Observation seen, Watchdog watchdog) {
        this.call = call;
        this.number = number;
        this.seen = seen;
        this.watchdog = watchdog;
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

    /** Writes the ID on what becomes its request. */
    void prepare(RequestTemplate template) {
        call.prepare(template);
        prepared = template;
    }

    /** What the ID was written on; null if the interceptor that does so was not asked. */
    @Nullable
    RequestTemplate prepared() {
        return prepared;
    }

    /** What ends it at the call's deadline. One for all its requests, redirected ones included. */
    Watch watch(@Nullable Thread waiting) {
        Watch watched = watch;
        if (watched == null) {
            watched = watchdog.watch(call.logical().deadline(), waiting);
            watch = watched;
        }
        return watched;
    }

    /** What is still read, is read by the caller. */
    void ended() {
        Watch watched = watch;
        if (watched != null) {
            watched.ended();
        }
    }

    /** The request is in flight, and this is where its response comes in. */
    void sent(CompletableFuture<Response> response) {
        wire = response;
    }

    /** Nobody waits for the response any more. */
    void abort() {
        CompletableFuture<Response> response = wire;
        if (response != null) {
            response.cancel(true);
        }
        Watch watched = watch;
        if (watched != null) {
            watched.abort();
        }
    }
}
