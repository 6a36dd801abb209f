package io.idempotence.client.feign;

import feign.AsyncClient;
import feign.AsyncFeign;
import feign.BaseBuilder;
import feign.Capability;
import feign.Client;
import feign.Contract;
import feign.Feign;
import feign.FeignException;
import feign.InvocationHandlerFactory;
import feign.Retryer;
import feign.codec.Encoder;
import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.internal.call.CallIdentity;
import io.idempotence.http.InvalidIdempotencyKeyException;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The client half for Feign. It gives every logical call one idempotence ID and keeps it on every attempt (promise P1).
 *
 * <pre>{@code
 * Orders orders = IdempotentFeign.install(Feign.builder()).target(Orders.class, "https://orders.example");
 * }</pre>
 *
 * <p><b>Set-up:</b> call {@code install} once. Call it after {@code requestInterceptors(...)}, which drops earlier interceptors, and
 * after other capabilities that bring an invocation handler, such as {@code Resilience4jFeign.capability}. Interceptors added before see
 * no ID. Interceptors added after see the ID and must not change it. The encoder runs once for each call with an ID, and every attempt
 * sends what it wrote. {@code ReactorFeign}, {@code RxJavaFeign} and {@code HystrixFeign} are not supported. Neither are {@code suspend}
 * functions of Kotlin: building a client with one throws an {@link IllegalArgumentException}.
 *
 * <p><b>Which calls carry an ID:</b> POST and PATCH (see {@link IdempotenceClientConfig#methods()}), methods and interfaces with {@link
 * io.idempotence.Idempotent}, and unsafe calls whose caller passes an {@code Idempotency-Key} header. GET, HEAD, OPTIONS and TRACE never
 * carry one.
 *
 * <p><b>Which ID:</b> the caller's header argument, else that of {@link io.idempotence.client.IdempotenceScope}, else one derived from
 * the {@link io.idempotence.InboundRequest} whose handler makes the call, else a new one.
 *
 * <p><b>Calls without an ID</b> behave as if this library were absent. Feign's {@code Retryer} and the HTTP client retry as usual, there
 * is no deadline, and exceptions are the usual ones. Only the listener gets an event.
 *
 * <p><b>What is retried:</b> requests that certainly were not sent, I/O failures, responses that may have been cut or that a decoder
 * rejects with a {@code RetryableException}, and the statuses of {@link IdempotenceClientConfig#statuses()}, unless the response is a stored
 * one. An execution in progress is polled within the attempt. Feign's own {@code Retryer} is not used. Attempts, waits and polls end at
 * {@link IdempotenceClientConfig#deadline()}. So does an exchange, in every stage that the table in {@code docs/deadlines.md} lists.
 *
 * <p><b>How a call ends</b> (promise P7):
 *
 * <ul>
 *   <li>With a response: the decoded value, or the exception that Feign and the client's {@code ErrorDecoder} make of it. A method that
 *       returns {@code Response} gets the last response, error statuses included. Earlier ones are closed. Error bodies up to 1 MiB are
 *       read first. If the body ends early while the caller reads it, make the call again under the same ID.
 *   <li>With {@link FeignRequestRefusedException}, if the server half refused, whatever the return type.
 *   <li>With {@link FeignOutcomeUnknownException}, if the call may have been executed and no later response settled it. These do not
 *       settle an earlier attempt unless they are stored responses: the statuses of {@link IdempotenceClientConfig#statuses()}, and
 *       statuses that a login or a gateway may send before the operation sees the request (401, 403, 404, 413 and the like).
 *   <li>With the usual Feign exception, if nothing was sent, or if the last response was an error status and no attempt is in doubt.
 *   <li>With the exception of an interceptor, encoder or other code of the caller that prevented the request. With {@link
 *       io.idempotence.http.InvalidIdempotencyKeyException}, if the caller's header is not an ID. With {@link IllegalStateException}, if
 *       two calls would share an ID, if the server half may have forgotten the ID, or if the client is set up wrongly. A call in doubt
 *       never ends like this.
 * </ul>
 *
 * <p>Of the unchecked exceptions of an HTTP client, only {@code RejectedExecutionException} and the refusals of Resilience4j's circuit
 * breaker, bulkhead and rate limiter can count as not sent: over Feign's client for OkHttp, if the request has a body and OkHttp has not
 * sent it; over Feign's default client; from the executor of Feign's asynchronous client. Over any other client they leave doubt. A thread
 * that is interrupted during a call makes no further attempt and keeps its flag.
 *
 * <p><b>Layers between the proxy and its attempts</b>, such as {@code Resilience4jFeign}, may run a call again. All runs have the call's
 * ID. The call ends with {@link FeignOutcomeUnknownException}, and what the layer threw is its cause, if the layer refuses another run of
 * a call that was executed or is in doubt, gives up while a request is in flight, or replaces the exception of an unknown outcome by one
 * without it as a cause. A run that follows one to which the operation responded starts in doubt.
 *
 * <p><b>A retry <em>above</em> the proxy</b> makes another call, with another ID, unless it is inside an {@link
 * io.idempotence.client.IdempotenceScope}. A warning is logged, once per method, if such a retry seems to follow an unknown outcome: the
 * same method, path and body within a minute.
 *
 * <p><b>Calls that return a future</b> follow the same rules, without a waiting thread. The {@code MethodInfoResolver} of {@code
 * AsyncFeign} decides which methods do. Every failure is in the future. The first attempt begins in the caller's thread, later ones in
 * {@link IdempotenceClientConfig#executor()}. Cancelling the future, or completing it otherwise, cancels the request in flight, and none
 * follows. The listener then gets {@code UNKNOWN} if a request was in flight or an earlier one left the call in doubt, because the
 * operation may have been executed, and else {@code FAILED}. If an asynchronous HTTP client has not ended its future 250 ms after the
 * deadline, that future is cancelled, and the call ends as if the request had timed out.
 *
 * <p><b>Responses that may have been cut:</b> {@code HttpURLConnection}, under Feign's default client, does not report that a response
 * ended early. So these leave the outcome of an attempt open, and the next attempt asks for it: a status outside 200 to 599; an empty
 * body with neither a length nor chunks (204 and 304 need none); an error with an incomplete body; a 409 without the server half's header
 * after an attempt in doubt. A body that is ended only by its connection is accepted.
 *
 * <p><b>HTTP clients that retry by themselves</b>, such as a load balancer with a retry of its own, hide their first request. If that one
 * was executed, an error status or a refused connection of the second ends the call with the usual Feign exception. Switch such retries
 * off. OkHttp retries when a kept connection breaks, after a 408, and after {@code Retry-After: 0}: call {@link
 * io.idempotence.client.okhttp.IdempotentOkHttp#install} on the client below, or at least build it with {@code
 * retryOnConnectionFailure(false)}. A first request of OkHttp that may have been executed leaves doubt. Feign's default client repeats
 * requests without a body. A failure of these leaves doubt, but an error status of the second request looks like one of the first.
 *
 * <p><b>Redirects</b> of calls with an ID are followed if the client's options allow it, but never to another origin (scheme, host or
 * port). That redirect is the response, and a warning is logged once per client. Within the origin, 307 and 308 repeat the request with
 * its ID. 301, 302 and 303 are followed as the HTTP client does, usually with a GET without the ID. Feign's default client does not
 * follow them for a request with a streamed body, so the redirect is the response. While an earlier attempt is in doubt, such a GET is
 * sent only if the redirect was a stored response. Otherwise the outcome stays unknown. Nothing is followed after a cancellation, an
 * interrupt or the deadline. If a load balancer replaces a service's name by an instance, a redirect of the instance to itself goes to
 * the service.
 */
public final class IdempotentFeign {
    private IdempotentFeign() {}

    /**
     * Installs with {@link IdempotenceClientConfig#load()}.
     *
     * @param builder the builder of the client
     * @param <B> its type
     * @return {@code builder}
     * @throws io.idempotence.client.IdempotenceConfigException if a loaded setting is wrong
     * @throws IllegalStateException if {@code install} was called on this builder before
     */
    public static <B extends Feign.Builder> B install(B builder) {
        return install(builder, IdempotenceClientConfig.load());
    }

    /**
     * Installs with given settings. Clients that share a config share the retry budgets of equal targets.
     *
     * @param builder the builder of the client
     * @param config the settings
     * @param <B> its type
     * @return {@code builder}
     * @throws IllegalArgumentException if {@code builder} is of a reactive Feign or HystrixFeign, which would drop the installation
     * @throws IllegalStateException if {@code install} was called on this builder before
     */
    public static <B extends Feign.Builder> B install(B builder, IdempotenceClientConfig config) {
        for (Class<?> type = builder.getClass();
                type != Feign.Builder.class && type != null;
                type = type.getSuperclass()) {
            if (type.getName().startsWith("feign.reactive.") || type.getName().startsWith("feign.hystrix.")) {
                throw new IllegalArgumentException(type.getName()
                        + " sets its own invocation handler, so its calls would be unprotected; use Feign.builder()");
            }
        }
        installAll(builder, config);
        return builder;
    }

    /**
     * Installs with {@link IdempotenceClientConfig#load()}.
     *
     * @param builder the builder of the client
     * @param <C> the context of its requests
     * @return {@code builder}
     * @throws io.idempotence.client.IdempotenceConfigException if a loaded setting is wrong
     * @throws IllegalStateException if {@code install} was called on this builder before
     */
    public static <C> AsyncFeign.AsyncBuilder<C> install(AsyncFeign.AsyncBuilder<C> builder) {
        return install(builder, IdempotenceClientConfig.load());
    }

    /**
     * Installs with given settings. Clients that share a config share the retry budgets of equal targets.
     *
     * @param builder the builder of the client
     * @param config the settings
     * @param <C> the context of its requests
     * @return {@code builder}
     * @throws IllegalStateException if {@code install} was called on this builder before
     */
    public static <C> AsyncFeign.AsyncBuilder<C> install(
            AsyncFeign.AsyncBuilder<C> builder, IdempotenceClientConfig config) {
        Objects.requireNonNull(builder, "builder");
        installAll(builder, config);
        return builder;
    }

    /**
     * The ID of a call that ended with an exception of Feign: a response that could not be decoded, an error status, or a failure
     * to send. The same call made again under this ID ({@link io.idempotence.client.IdempotenceScope#resume}) gets the same response,
     * or is executed if it was not.
     *
     * @param ended an exception of a client with this library installed
     * @return empty if the exception has no request, or if the last request had no valid ID, such as the GET after a redirect. An
     *     exception of another client with this library installed gives the ID of that client's call
     */
    public static Optional<IdempotenceId> idOf(FeignException ended) {
        List<String> lines =
                ended.hasRequest() ? KeyHeader.lines(ended.request().headers()) : List.of();
        try {
            return lines.isEmpty() ? Optional.empty() : Optional.of(CallIdentity.parse(lines));
        } catch (InvalidIdempotencyKeyException e) {
            return Optional.empty();
        }
    }

    private static void installAll(BaseBuilder<?, ?> builder, IdempotenceClientConfig config) {
        Installation installation = Installation.of(Objects.requireNonNull(config, "config"), builder);
        if (FeignInternals.elements(builder, "capabilities").stream().anyMatch(Installed.class::isInstance)) {
            throw new IllegalStateException("IdempotentFeign.install was called twice on this builder; call it once");
        }
        builder.requestInterceptor(new IdempotenceRequestInterceptor(installation));
        builder.addCapability(new Installed(installation));
    }

    /**
     * The Feign capability of the client half. Not for direct use: {@link IdempotentFeign#install} adds it. It is public because Feign calls it
     * by reflection.
     */
    public static final class Installed implements Capability {
        private final Installation installation;

        Installed(Installation installation) {
            this.installation = installation;
        }

        @Override
        public InvocationHandlerFactory enrich(InvocationHandlerFactory factory) {
            return new IdempotentInvocationHandlerFactory(factory, installation);
        }

        @Override
        public Contract enrich(Contract contract) {
            return type -> installation.feign().learn(contract.parseAndValidateMetadata(type));
        }

        @Override
        public Encoder enrich(Encoder encoder) {
            return new EncoderOfOneBody(encoder, installation.calls());
        }

        @Override
        public Client enrich(Client client) {
            return new ObservingClient(client, installation);
        }

        @Override
        public AsyncClient<Object> enrich(@Nullable AsyncClient<Object> client) {
            return new ObservingAsyncClient<>(
                    client == null ? installation.feign().defaultAsyncClient() : client, installation);
        }

        @Override
        public Retryer enrich(Retryer retryer) {
            installation.warnings().retryerIsReplaced(retryer);
            return new RetryerWithoutId(retryer, installation.calls());
        }
    }
}
