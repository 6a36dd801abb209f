package io.idempotence.client.feign;

import feign.AsyncClient;
import feign.Client;
import feign.Request;
import feign.Response;
import io.idempotence.client.internal.call.OuterAttempt;
import io.idempotence.client.internal.http.Watchdog.Watch;
import io.idempotence.internal.ThreadBound;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;

/** Feign's own asynchronous client, whose requests are sent by a thread of an executor and not by the caller's. */
final class ExecutorClient {
    private ExecutorClient() {}

    /**
     * Returns a copy of the client that sets the {@link OuterAttempt} in the thread that sends, and always completes its future. Any other
     * client, or an unknown version of this one, is returned unchanged.
     *
     * @param watches the watch of a request, in the caller's thread and in the one that sends
     */
    static <C> AsyncClient<C> observable(AsyncClient<C> client, ThreadBound<Watch> watches) {
        if (!HttpClientTraits.isDefaultAsync(client)) {
            return client;
        }
        try {
            Object sending = FeignInternals.field(client, client.getClass(), "client");
            Object executor = FeignInternals.field(client, client.getClass(), "executorService");
            if (!(sending instanceof Client under && executor instanceof ExecutorService threads)) {
                throw new NoSuchFieldException("client or executorService has another type");
            }
            Client cancellable = CancellableClients.of(under, watches);
            return (request, options, context) -> {
                Watch watch = watches.get();
                Client watched = watch == null
                        ? under
                        : (same, clipped) -> watches.during(watch, () -> cancellable.execute(same, clipped));
                return execute(withOuterAttempt(watched), threads, request, options);
            };
        } catch (ReflectiveOperationException e) {
            CancellableClients.cannotCancel(client, e);
            return client;
        }
    }

    private static Client withOuterAttempt(Client client) {
        OuterAttempt above = OuterAttempt.current();
        return above == null ? client : (request, options) -> above.sends(() -> client.execute(request, options));
    }

    /**
     * Sends a request as Feign does, with two differences: an Error completes the future as well, and a response that is no longer awaited
     * is closed.
     */
    private static CompletableFuture<Response> execute(
            Client client, ExecutorService threads, Request request, Request.Options options) {
        CompletableFuture<Response> result = new CompletableFuture<>();
        Future<?> sending = threads.submit(() -> {
            try {
                Response response = client.execute(request, options);
                if (!result.complete(response)) {
                    response.close();
                }
            } catch (Throwable e) {
                result.completeExceptionally(e);
            }
        });
        result.whenComplete((response, thrown) -> {
            if (result.isCancelled()) {
                sending.cancel(true);
            }
        });
        return result;
    }
}
