package io.idempotence.it.client;

import static io.idempotence.client.IdempotenceClientEvent.Result.FAILED;
import static io.idempotence.client.IdempotenceClientEvent.Result.SUCCEEDED;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import feign.AsyncClient;
import feign.Capability;
import feign.Client;
import feign.FeignException;
import feign.InvocationHandlerFactory;
import feign.InvocationHandlerFactory.MethodHandler;
import feign.RequestInterceptor;
import feign.RetryableException;
import feign.Retryer;
import feign.codec.Decoder;
import io.idempotence.client.feign.IdempotentFeign;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Modifier;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The layers of others around a call: interceptors, Retryers and capabilities. The call keeps its one ID. */
abstract class LayersContract extends WireMockTestBase {
    // ---- attempts

    /** Interceptors run again on every attempt, and {@code header} appends. */
    @Test
    void interceptorThatMakesAnIdPerAttemptCannotGiveACallTwo() {
        attemptsUpTo(2, status(500));
        RequestInterceptor naive =
                template -> template.header("idempotency-key", UUID.randomUUID().toString());
        orders(builder -> builder.requestInterceptor(naive)).create("x");
        assertThat(received()).hasSize(3);
        assertThat(Set.copyOf(ids())).hasSize(1);
        assertThat(ids().get(0)).matches("[0-9a-f-]{36}");
    }

    @Test
    void interceptorsOfTheApplicationRunOnEveryAttempt() {
        attemptsUpTo(2, status(500));
        AtomicInteger signature = new AtomicInteger();
        orders(builder -> builder.requestInterceptor(t -> t.header("X-Signature", "s" + signature.incrementAndGet())))
                .create("x");
        assertThat(received().stream().map(request -> header(request, "X-Signature")))
                .containsExactly("s1", "s2", "s3");
        assertOneId();
    }

    /** A retry around Feign's handler makes a new template each time. */
    @Test
    void retryBetweenProxyAndHandlerKeepsTheId() {
        requestsGet(status(404), status(404));
        orders(builder -> builder.addCapability(new RetryCapability(3))).create("x");
        assertThat(received()).hasSize(3);
        assertOneId();
    }

    // ---- Retryers, capabilities and handlers of others

    /** Feign's own Retryer would make 5 x 3 requests. */
    @Test
    void retryerOfFeignIsSwitchedOff() {
        alwaysGet(status(503).withHeader("Retry-After-Ms", "1"));
        Orders orders = orders(builder -> builder.retryer(new Retryer.Default(1, 1, 5))
                .errorDecoder((method, response) -> new RetryableException(
                        503, "again", response.request().httpMethod(), (Long) null, response.request())));
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(RetryableException.class);
        assertThat(received()).hasSize(3);
        assertEnd(FAILED, 3);
    }

    /** Feign calls it by reflection, and on Feign 13.6 the newer types do not exist. */
    @Test
    void capabilityIsPublicAndRefersToNoTypeThatOldFeignsLack() {
        assertThat(Modifier.isPublic(IdempotentFeign.Installed.class.getModifiers()))
                .isTrue();
        Set<Class<?>> enriched = Stream.of(IdempotentFeign.Installed.class.getDeclaredMethods())
                .filter(method -> method.getName().equals("enrich") && !method.isBridge())
                .map(method -> method.getParameterTypes()[0])
                .collect(Collectors.toSet());
        assertThat(enriched).contains(InvocationHandlerFactory.class, Client.class, Retryer.class);
        assertThat(enriched.stream().map(Class::getName))
                .doesNotContain("feign.RequestInterceptors", "feign.MethodInterceptor");
    }

    /** Added before ours, a breaker counts calls and not attempts, and its fallback comes after the attempts. */
    @Test
    void breakerAddedBeforeOursCountsCallsAndFallsBackAfterAllAttempts() {
        alwaysGet(status(503));
        BreakerCapability breaker = new BreakerCapability();
        assertThat(orders(builder -> builder.addCapability(breaker)).create("x"))
                .isEqualTo("fallback");
        assertThat(breaker.failures).hasValue(1);
        assertThat(received()).hasSize(3);
        assertOneId();
    }

    @Test
    void breakerAddedBeforeOursCountsARescuedCallAsSuccess() {
        attemptsUpTo(2, status(503));
        BreakerCapability breaker = new BreakerCapability();
        assertThat(orders(builder -> builder.addCapability(breaker)).create("x"))
                .isEqualTo(OK);
        assertThat(breaker.failures).hasValue(0);
        assertThat(breaker.successes).hasValue(1);
    }

    /**
     * Added after ours, a capability that brings its own handler drops ours. Where the mistake is let through, no request goes
     * out unprotected.
     */
    @Test
    void capabilityAddedAfterOursNeverMakesACallWithoutAnId() {
        requestsGet(status(404), status(404));
        try {
            target(install(feign(), fast().build()).addCapability(new RetryCapability(3)))
                    .create("x");
        } catch (RuntimeException e) {
            // refusing the builder or the call is as good
        }
        assertThat(ids()).isNotEmpty().doesNotContain("");
    }

    /** As the capabilities of caching and of Micrometer: they wrap what is there, and drop nothing. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void capabilitiesThatWrapMaySitOnEitherSide(boolean before) {
        attemptsUpTo(2, status(500));
        CachingStandIn wrapping = new CachingStandIn();
        Orders orders = before
                ? orders(builder -> builder.addCapability(wrapping))
                : target(install(feign(), fast().build()).addCapability(wrapping));
        assertThat(orders.create("x")).isEqualTo(OK);
        assertOneId();
        assertThat(attempts()).containsExactly("1", "2", "3");
        assertThat(wrapping.calls).hasValue(1);
        assertThat(wrapping.requests).hasValue(3);
        assertThat(wrapping.decoded).hasValue(1);
        assertEnd(SUCCEEDED, 3);

        orders.tick();
        assertThat(attempts()).containsExactly("1", "2", "3");
        assertThat(received()).hasSize(6);
        assertThat(Set.copyOf(ids())).hasSize(2);
        assertThat(wrapping.calls).hasValue(2);
    }

    /**
     * A capability like Resilience4jFeign's with a retry, which replaces the factory by its own. Public because Feign calls it by
     * reflection.
     */
    public static final class RetryCapability implements Capability {
        private final int attempts;

        RetryCapability(int attempts) {
            this.attempts = attempts;
        }

        @Override
        public InvocationHandlerFactory enrich(InvocationHandlerFactory factory) {
            return (target, dispatch) -> (proxy, method, args) -> attempt(dispatch.get(method), args, attempts);
        }

        private static Object attempt(MethodHandler handler, Object[] args, int left) throws Throwable {
            Object response;
            try {
                response = handler.invoke(args);
            } catch (FeignException e) {
                if (left == 1) {
                    throw e;
                }
                return attempt(handler, args, left - 1);
            }
            return response instanceof CompletableFuture<?> later ? later(later, handler, args, left) : response;
        }

        private static CompletableFuture<?> later(
                CompletableFuture<?> response, MethodHandler handler, Object[] args, int left) {
            return response.handle((value, thrown) -> {
                        if (!(thrown instanceof FeignException) || left == 1) {
                            return response;
                        }
                        try {
                            return (CompletableFuture<?>) attempt(handler, args, left - 1);
                        } catch (Throwable t) {
                            throw new CompletionException(t);
                        }
                    })
                    .thenCompose(last -> last);
        }
    }

    /** A capability like Resilience4jFeign's with a circuit breaker and a fallback. Public because Feign calls it by reflection. */
    public static final class BreakerCapability implements Capability {
        final AtomicInteger successes = new AtomicInteger();
        final AtomicInteger failures = new AtomicInteger();

        @Override
        public InvocationHandlerFactory enrich(InvocationHandlerFactory factory) {
            return (target, dispatch) -> (proxy, method, args) -> {
                try {
                    Object response = dispatch.get(method).invoke(args);
                    if (response instanceof CompletableFuture<?> later) {
                        return later.handle((value, thrown) -> counted(value, thrown));
                    }
                    return counted(response, null);
                } catch (FeignException e) {
                    return counted(null, e);
                }
            };
        }

        private Object counted(Object value, Throwable thrown) {
            (thrown == null ? successes : failures).incrementAndGet();
            return thrown == null ? value : "fallback";
        }
    }

    /**
     * A stand-in for Feign's caching capability, wrapped around every place that capabilities can wrap. Public because Feign
     * calls it by reflection.
     */
    public static final class CachingStandIn implements Capability {
        final AtomicInteger calls = new AtomicInteger();
        final AtomicInteger requests = new AtomicInteger();
        final AtomicInteger decoded = new AtomicInteger();

        @Override
        public InvocationHandlerFactory enrich(InvocationHandlerFactory factory) {
            return (target, dispatch) -> {
                InvocationHandler wrapped = factory.create(target, dispatch);
                return (proxy, method, args) -> {
                    if (method.getDeclaringClass() != Object.class) {
                        calls.incrementAndGet();
                    }
                    return wrapped.invoke(proxy, method, args == null ? new Object[0] : args);
                };
            };
        }

        @Override
        public Client enrich(Client client) {
            return (request, options) -> {
                requests.incrementAndGet();
                return client.execute(request, options);
            };
        }

        @Override
        public AsyncClient<Object> enrich(AsyncClient<Object> client) {
            return (request, options, context) -> {
                requests.incrementAndGet();
                return client.execute(request, options, context).thenApply(response -> response);
            };
        }

        @Override
        public Decoder enrich(Decoder decoder) {
            return (response, type) -> {
                decoded.incrementAndGet();
                return decoder.decode(response, type);
            };
        }
    }
}
