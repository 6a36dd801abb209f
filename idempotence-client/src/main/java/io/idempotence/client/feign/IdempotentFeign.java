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
 * <p><b>Set-up:</b> call {@code install} once, after {@code requestInterceptors(...)}, which drops earlier interceptors, and after other
 * capabilities that bring an invocation handler. Interceptors added before see no ID. Interceptors added after see it and must not change
 * it. {@code ReactorFeign}, {@code RxJavaFeign}, {@code HystrixFeign} and {@code suspend} functions of Kotlin are not supported.
 *
 * <p><b>How a call with an ID ends</b> (promise P7). A method that returns a future ends in the same ways, and every failure is in the future:
 *
 * <ul>
 *   <li>With a response: the decoded value, or the exception that Feign and the client's {@code ErrorDecoder} make of it. A method that
 *       returns {@code Response} gets error statuses, too. If the body ends early while the caller reads it, make the call again under
 *       the same ID.
 *   <li>With {@link FeignRequestRefusedException}, if the server half refused.
 *   <li>With {@link FeignOutcomeUnknownException}, if the call may have been executed and no later response settled it.
 *   <li>With the usual Feign exception, if nothing was sent, or if the last response was an error status and no attempt is in doubt.
 *   <li>With the exception of an interceptor or encoder that prevented the request, {@link
 *       io.idempotence.http.InvalidIdempotencyKeyException} if the caller's header is not an ID, or {@link IllegalStateException} if two
 *       calls would share an ID, if the server half may have forgotten the ID, or if the client is set up wrongly. A call in doubt never
 *       ends like this.
 * </ul>
 *
 * <p>A call without an ID behaves as if this library were absent. The pages {@code docs/feign.md}, {@code docs/outcomes.md} and {@code
 * docs/deadlines.md} have the rest: HTTP clients, redirects, retries of your own, what settles a doubt, and when a call ends at the latest.
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
