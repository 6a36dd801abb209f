package io.idempotence.client.feign;

import feign.AsyncClient;
import feign.Request;
import feign.Response;
import java.io.IOException;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;

/** As {@link ObservingClient}, for clients that answer later. */
final class ObservingAsyncClient<C> implements AsyncClient<C> {
    /** The first cannot cancel, the others hand no cancellation down. */
    private static final List<String> DEAF_PACKAGES =
            List.of("feign.okhttp.", "feign.micrometer.", "feign.metrics4.", "feign.metrics5.");

    private final AsyncClient<C> delegate;
    private final AsyncClient<C> wireClient;
    private final HttpClients httpClient;
    private final Installation installation;
    private final boolean cancels;

    ObservingAsyncClient(AsyncClient<C> delegate, Installation installation) {
        this.delegate = delegate;
        this.wireClient =
                ExecutorClient.observable(EndableClients.of(delegate, installation.sending()), installation.sending());
        this.httpClient = HttpClients.of(delegate);
        this.installation = installation;
        this.cancels = DEAF_PACKAGES.stream().noneMatch(delegate.getClass().getName()::startsWith);
    }

    @Override
    public CompletableFuture<Response> execute(Request request, Request.Options options, Optional<C> context) {
        FeignAttempt attempt = installation.calls().attemptOf(request);
        if (attempt == null) {
            return delegate.execute(request, options, context);
        }
        CompletableFuture<Response> answer = new CompletableFuture<>();
        attempt.sent(answer);
        send(new ObservedRequest(installation, attempt, request, options, httpClient, null), context, answer);
        return answer;
    }

    private void send(ObservedRequest observed, Optional<C> context, CompletableFuture<Response> answer) {
        CompletableFuture<Response> wire;
        observed.starts();
        try {
            wire = observed.sends(() -> wireClient.execute(observed.request(), observed.options(), context));
        } catch (Throwable t) {
            fail(observed, answer, t, false);
            return;
        }
        answer.whenComplete((response, thrown) -> {
            // A client that does not heed it would give its response to nobody: so we wait for that, and close it.
            if (cancels && answer.isCancelled()) {
                wire.cancel(true);
            }
        });
        wire.whenComplete((response, thrown) -> {
            if (thrown != null) {
                fail(
                        observed,
                        answer,
                        thrown instanceof CompletionException e && e.getCause() != null ? e.getCause() : thrown,
                        true);
                return;
            }
            try {
                Response whole = observed.received(response);
                if (observed.follows(whole, !answer.isDone())) {
                    send(observed, context, answer);
                } else if (!answer.complete(whole)) {
                    whole.close();
                }
            } catch (Throwable t) {
                fail(observed, answer, t, true);
            }
        });
    }

    private static void fail(
            ObservedRequest observed, CompletableFuture<Response> answer, Throwable thrown, boolean inFuture) {
        if (thrown instanceof IOException e) {
            answer.completeExceptionally(observed.failed(e));
        } else {
            observed.broken(thrown, inFuture);
            answer.completeExceptionally(thrown);
        }
    }
}
