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
import feign.InvocationHandlerFactory.MethodHandler;
import feign.RequestInterceptor;
import feign.RequestTemplate;
import feign.RetryableException;
import feign.Retryer;
import feign.Target;
import feign.codec.Encoder;
import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.internal.call.CallIdentity;
import io.idempotence.http.InvalidIdempotencyKeyException;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
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
 * capabilities that set an invocation handler. Interceptors that were added earlier do not see the ID. Interceptors that are added later
 * see it and must not change it. {@code ReactorFeign}, {@code RxJavaFeign}, {@code HystrixFeign} and {@code suspend} functions of Kotlin
 * are not supported.
 *
 * <p><b>How a call with an ID ends</b> (promise P7). A method that returns a future ends in the same ways, and every failure is in the future:
 *
 * <ul>
 *   <li>With a response: the decoded value, or the exception that Feign and the client's {@code ErrorDecoder} make of it. A method that
 *       returns {@code Response} gets error statuses, too. If the body ends early while the caller reads it, make the call again under
 *       the same ID.
 *   <li>With {@link FeignRequestRefusedException}, if the server half refused.
 *   <li>With {@link FeignOutcomeUnknownException}, if the call may have been executed and no later response settled it.
 *   <li>With the usual Feign exception, if no attempt was sent, or if an error status is the last thing known about the operation. If that
 *       status is a 5xx, later failures that show nothing about the operation are added to the exception as suppressed ones.
 *   <li>With the exception of an interceptor or encoder that prevented the request, {@link
 *       io.idempotence.http.InvalidIdempotencyKeyException} if the caller's header is not an ID, or {@link IllegalStateException} if two
 *       calls would share an ID, if the server half may have forgotten the ID, or if the client is set up wrongly. A call that
 *       may have been executed never ends like this.
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
     * @throws io.idempotence.client.IdempotenceClientConfigException if a loaded setting is wrong
     * @throws IllegalArgumentException if {@code builder} is of a reactive Feign or HystrixFeign, which would drop the installation
     * @throws IllegalStateException if {@code install} was called on this builder before, or this version of Feign is not supported
     */
    public static <B extends Feign.Builder> B install(B builder) {
        return install(builder, IdempotenceClientConfig.load());
    }

    /**
     * Installs with given settings. Clients that share a config share the retry budgets of equal names.
     *
     * @param builder the builder of the client
     * @param config the settings
     * @param <B> its type
     * @return {@code builder}
     * @throws IllegalArgumentException if {@code builder} is of a reactive Feign or HystrixFeign, which would drop the installation
     * @throws IllegalStateException if {@code install} was called on this builder before, or this version of Feign is not supported
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
     * @throws io.idempotence.client.IdempotenceClientConfigException if a loaded setting is wrong
     * @throws IllegalStateException if {@code install} was called on this builder before, or this version of Feign is not supported
     */
    public static <C> AsyncFeign.AsyncBuilder<C> install(AsyncFeign.AsyncBuilder<C> builder) {
        return install(builder, IdempotenceClientConfig.load());
    }

    /**
     * Installs with given settings. Clients that share a config share the retry budgets of equal names.
     *
     * @param builder the builder of the client
     * @param config the settings
     * @param <C> the context of its requests
     * @return {@code builder}
     * @throws IllegalStateException if {@code install} was called on this builder before, or this version of Feign is not supported
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
                ended.hasRequest() ? FeignHeaders.idIn(ended.request().headers()) : List.of();
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
        builder.requestInterceptor(interceptor(installation));
        builder.addCapability(new Installed(installation));
    }

    /** The interceptor that writes the call's ID on each of its requests. */
    static RequestInterceptor interceptor(Installation installation) {
        return template -> {
            FeignAttempt attempt = installation.calls().attemptOf(template);
            if (attempt == null) {
                installation.warnings().requestIsOutsideOfACall();
                orphan(template, installation).prepare(template);
                return;
            }
            attempt.prepare(template);
            installation.calls().remember(template, attempt);
        };
    }

    /** Creates a call of one request. It has an ID, although no retry keeps it. */
    private static FeignCall orphan(RequestTemplate template, Installation installation) {
        Target<?> target = template.feignTarget();
        Method method = template.methodMetadata().method();
        return new FeignCall(new ClientMethod(target, method, installation.config(), null, false, true));
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
            return (target, dispatch) -> handler(factory, target, dispatch);
        }

        /** Puts the opening of calls above the handler of {@code factory}, and the retry loop below it. */
        private InvocationHandler handler(
                InvocationHandlerFactory factory, Target<?> target, Map<Method, MethodHandler> dispatch) {
            Map<Method, MethodHandler> wrapped = new LinkedHashMap<>();
            Map<Method, ClientMethod> opening = new HashMap<>();
            dispatch.forEach((method, handler) -> {
                if (method.isDefault()) {
                    wrapped.put(method, handler);
                } else {
                    ClientMethod own = new ClientMethod(
                            target,
                            method,
                            installation.config(),
                            installation.feign().declared(target.type(), method),
                            installation.feign().returnsFuture(target.type(), method),
                            installation.feign().isInterceptedBefore());
                    opening.put(method, own);
                    wrapped.put(method, new RetryingMethodHandler(handler, own, installation));
                }
            });
            return new IdempotentInvocationHandler(
                    factory.create(target, wrapped), target.type(), opening, installation.calls());
        }

        @Override
        public Contract enrich(Contract contract) {
            return type -> installation.feign().learn(contract.parseAndValidateMetadata(type));
        }

        /** It runs once for each call with an ID. Later requests of the call get the body and the headers that it wrote. */
        @Override
        public Encoder enrich(Encoder encoder) {
            return (object, bodyType, template) -> {
                FeignAttempt attempt = installation.calls().attemptOf(template);
                if (attempt == null) {
                    encoder.encode(object, bodyType, template);
                } else {
                    attempt.call().encode(template, () -> encoder.encode(object, bodyType, template));
                }
            };
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

    /** The client's own Retryer, limited to calls without an ID. Calls with one are retried above it, where the ID is kept. */
    private record RetryerWithoutId(Retryer delegate, CallLookup calls) implements Retryer {
        @Override
        public void continueOrPropagate(RetryableException failure) {
            FeignAttempt attempt = calls.attemptOf(failure.hasRequest() ? failure.request() : null);
            if (attempt == null || attempt.call().carriesId()) {
                throw failure;
            }
            delegate.continueOrPropagate(failure);
        }

        @Override
        public Retryer clone() {
            return new RetryerWithoutId(delegate.clone(), calls);
        }
    }
}
