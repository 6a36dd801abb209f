package io.idempotence.client.feign;

import feign.RequestTemplate;
import feign.Response;
import io.idempotence.client.internal.http.Observation;
import io.idempotence.client.internal.http.Watchdog;
import io.idempotence.client.internal.http.Watchdog.Watch;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** An attempt of a call, shared by the interceptor and the HTTP client. */
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

    /** Writes the ID on the template of its request. */
    void prepare(RequestTemplate template) {
        call.prepare(template);
        prepared = template;
    }

    /** The template with the ID; null if the interceptor that writes it was not called. */
    @Nullable
    RequestTemplate prepared() {
        return prepared;
    }

    /** Returns the watch that ends this attempt at the call's deadline. All its requests share it, redirected ones included. */
    Watch watch(@Nullable Thread waiting) {
        Watch watched = watch;
        if (watched == null) {
            watched = watchdog.watch(call.logical().deadline(), waiting);
            watch = watched;
        }
        return watched;
    }

    /** Called when the attempt has ended. The caller reads the rest of the response. */
    void ended() {
        Watch watched = watch;
        if (watched != null) {
            watched.ended();
        }
    }

    /**
     * Called when the request is in flight.
     *
     * @param response completes with its response
     */
    void sent(CompletableFuture<Response> response) {
        wire = response;
    }

    /** Ends the attempt when its response is no longer awaited. */
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
