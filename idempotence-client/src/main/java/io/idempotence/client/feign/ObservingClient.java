package io.idempotence.client.feign;

import feign.Client;
import feign.Request;
import feign.Response;
import java.io.IOException;

/** The HTTP client that records what is sent and received, and cuts the time of an attempt to what its call has left. */
final class ObservingClient implements Client {
    private final Client delegate;
    private final Client cancellable;
    private final HttpClientTraits httpClient;
    private final Installation installation;

    ObservingClient(Client delegate, Installation installation) {
        this.delegate = delegate;
        this.cancellable = CancellableClients.of(delegate, installation.sending());
        this.httpClient = HttpClientTraits.of(delegate);
        this.installation = installation;
    }

    @Override
    public Response execute(Request request, Request.Options options) throws IOException {
        FeignAttempt attempt = installation.calls().attemptOf(request);
        if (attempt == null) {
            return delegate.execute(request, options);
        }
        FeignExchange exchange =
                new FeignExchange(installation, attempt, request, options, httpClient, Thread.currentThread());
        Client sending = attempt.call().carriesId() ? cancellable : delegate;
        try {
            Response response;
            do {
                exchange.starts();
                response = exchange.received(
                        exchange.sends(() -> sending.execute(exchange.request(), exchange.options())));
            } while (exchange.follows(response, !Thread.currentThread().isInterrupted()));
            return response;
        } catch (IOException e) {
            throw exchange.failed(e);
        } catch (RuntimeException | Error e) {
            IOException aborted = exchange.aborted(e);
            if (aborted != null) {
                throw exchange.failed(aborted);
            }
            exchange.broken(e, false);
            throw e;
        }
    }
}
