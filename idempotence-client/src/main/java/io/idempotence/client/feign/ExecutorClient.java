package io.idempotence.client.feign;

import feign.AsyncClient;
import feign.Client;
import feign.Request;
import feign.Response;
import io.idempotence.client.internal.call.OuterAttempt;
import io.idempotence.client.internal.http.Watchdog.Watch;
import io.idempotence.client.internal.scope.ThreadBound;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;

/** Feign's own asynchronous client: a thread of an executor sends the request, and not the one that hands it in. */
final class ExecutorClient {
    private static final Set<String> NAMES = Set.of("feign.AsyncClient$Default", "feign.DefaultAsyncClient");

    private ExecutorClient() {}

    /**
     * Its like, which says {@link OuterAttempt} in the thread that sends, and ends whatever happens there. Any other client, and
     * one of another build than those known, as it is.
     *
     * @param watches the watch of what is sent, in the thread that hands it in and in the one that sends
     */
    static <C> AsyncClient<C> observable(AsyncClient<C> client, ThreadBound<Watch> watches) {
        if (!NAMES.contains(client.getClass().getName())) {
            return client;
        }
        try {
            Object sending = FeignInternals.field(client, client.getClass(), "client");
            Object executor = FeignInternals.field(client, client.getClass(), "executorService");
            if (!(sending instanceof Client under && executor instanceof ExecutorService threads)) {
                throw new NoSuchFieldException("client or executorService has another type");
            }
            Client endable = EndableClients.of(under, watches);
            return (request, options, context) -> {
                Watch watch = watches.get();
                Client watched = watch == null
                        ? under
                        : (same, clipped) -> watches.during(watch, () -> endable.execute(same, clipped));
                return execute(sayingWhoIsAbove(watched), threads, request, options);
            };
        } catch (ReflectiveOperationException e) {
            EndableClients.cannotEnd(client, e);
            return client;
        }
    }

    private static Client sayingWhoIsAbove(Client client) {
        OuterAttempt above = OuterAttempt.current();
        return above == null ? client : (request, options) -> above.sends(() -> client.execute(request, options));
    }

    /**
     * As Feign does it, but that an Error ends the future as well, and that a response nobody waits for any more gives its
     * connection back.
     */
    private static CompletableFuture<Response> execute(
            Client client, ExecutorService threads, Request request, Request.Options options) {
        CompletableFuture<Response> answer = new CompletableFuture<>();
        Future<?> sending = threads.submit(() -> {
            try {
                Response response = client.execute(request, options);
                if (!answer.complete(response)) {
                    response.close();
                }
            } catch (Throwable e) {
                answer.completeExceptionally(e);
            }
        });
        answer.whenComplete((response, thrown) -> {
            if (answer.isCancelled()) {
                sending.cancel(true);
            }
        });
        return answer;
    }
}
