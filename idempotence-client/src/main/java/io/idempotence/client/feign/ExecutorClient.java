package io.idempotence.client.feign;

import feign.AsyncClient;
import feign.Client;
import io.idempotence.client.retry.LayerAbove;
import java.util.Set;
import java.util.concurrent.ExecutorService;

/** Feign's own asynchronous client: a thread of an executor sends the request, and not the one that hands it in. */
final class ExecutorClient {
    private static final Set<String> NAMES = Set.of("feign.AsyncClient$Default", "feign.DefaultAsyncClient");

    private ExecutorClient() {}

    /** Its like, which says {@link LayerAbove} in the thread that sends. Any other client, and one of another build than those known, as it is. */
    static <C> AsyncClient<C> marking(AsyncClient<C> client) {
        if (!NAMES.contains(client.getClass().getName())) {
            return client;
        }
        try {
            Object sending = FeignField.of(client, client.getClass(), "client");
            Object executor = FeignField.of(client, client.getClass(), "executorService");
            return sending instanceof Client under && executor instanceof ExecutorService threads
                    ? (request, options, context) -> {
                        LayerAbove above = LayerAbove.current();
                        return new AsyncClient.Default<C>(above == null ? under : marking(above, under), threads)
                                .execute(request, options, context);
                    }
                    : client;
        } catch (ReflectiveOperationException e) {
            return client;
        }
    }

    private static Client marking(LayerAbove above, Client client) {
        return (request, options) -> above.sends(() -> client.execute(request, options));
    }
}
