package io.idempotence.client.feign;

import feign.AsyncClient;
import feign.Request;
import feign.Response;
import java.io.IOException;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;

/** The asynchronous counterpart of {@link ObservingClient}. */
final class ObservingAsyncClient<C> implements AsyncClient<C> {
    /** The packages of clients that ignore a cancellation. The first cannot cancel, the others do not pass it on. */
    private static final List<String> WITHOUT_CANCELLATION =
            List.of("feign.okhttp.", "feign.micrometer.", "feign.metrics4.", "feign.metrics5.");

    private final AsyncClient<C> delegate;
    /** The delegate, which also passes the attempt to a client half below when it sends in another thread. */
    private final AsyncClient<C> withOuterAttempt;

    private final AsyncClient<C> cancellable;
    private final HttpClientTraits httpClient;
    private final Installation installation;
    private final boolean cancels;

    ObservingAsyncClient(AsyncClient<C> delegate, Installation installation) {
        this.delegate = delegate;
        this.withOuterAttempt = ExecutorClient.observable(delegate, installation.sending());
        this.cancellable = CancellableClients.of(withOuterAttempt, installation.sending());
        this.httpClient = HttpClientTraits.of(delegate);
        this.installation = installation;
        this.cancels =
                WITHOUT_CANCELLATION.stream().noneMatch(delegate.getClass().getName()::startsWith);
    }

    @Override
    public CompletableFuture<Response> execute(Request request, Request.Options options, Optional<C> context) {
        FeignAttempt attempt = installation.calls().attemptOf(request);
        if (attempt == null) {
            return delegate.execute(request, options, context);
        }
        CompletableFuture<Response> result = new CompletableFuture<>();
        attempt.sent(result);
        AsyncClient<C> sending = attempt.call().carriesId() ? cancellable : withOuterAttempt;
        try {
            send(
                    new FeignExchange(installation, attempt, request, options, httpClient, null),
                    sending,
                    context,
                    result);
        } catch (IOException notSent) {
            result.completeExceptionally(notSent);
        }
        return result;
    }

    private void send(
            FeignExchange exchange, AsyncClient<C> client, Optional<C> context, CompletableFuture<Response> result) {
        CompletableFuture<Response> wire;
        exchange.starts();
        try {
            wire = exchange.sends(() -> client.execute(exchange.request(), exchange.options(), context));
        } catch (Throwable t) {
            fail(exchange, result, t, false);
            return;
        }
        result.whenComplete((response, thrown) -> {
            // A client that ignores the cancellation would drop its response, so the response is awaited and closed.
            if (cancels && result.isCancelled()) {
                wire.cancel(true);
            }
        });
        wire.whenComplete((response, thrown) -> {
            if (thrown != null) {
                fail(
                        exchange,
                        result,
                        thrown instanceof CompletionException e && e.getCause() != null ? e.getCause() : thrown,
                        true);
                return;
            }
            try {
                Response whole = exchange.received(response);
                if (exchange.follows(whole, !result.isDone())) {
                    send(exchange, client, context, result);
                } else if (!result.complete(whole)) {
                    whole.close();
                }
            } catch (Throwable t) {
                fail(exchange, result, t, true);
            }
        });
    }

    private static void fail(
            FeignExchange exchange, CompletableFuture<Response> result, Throwable thrown, boolean inFuture) {
        IOException failure = thrown instanceof IOException e ? e : exchange.aborted(thrown);
        if (failure != null) {
            result.completeExceptionally(exchange.failed(failure));
        } else {
            exchange.broken(thrown, inFuture);
            result.completeExceptionally(thrown);
        }
    }
}
