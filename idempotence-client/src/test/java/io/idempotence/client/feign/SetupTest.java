package io.idempotence.client.feign;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import feign.AsyncFeign;
import feign.Capability;
import feign.Client;
import feign.Feign;
import feign.InvocationHandlerFactory;
import feign.Request;
import feign.Retryer;
import io.github.resilience4j.retry.Retry;
import io.github.resilience4j.retry.RetryConfig;
import io.github.resilience4j.retry.RetryRegistry;
import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.OutcomeUnknown;
import io.idempotence.client.feign.TestServer.Reply;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeoutException;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The building of a client: wrong combinations are refused or cause a warning. */
class SetupTest extends FeignTestBase {
    @RegisterExtension
    private final SilentLog log = new SilentLog(IdempotentFeign.class.getName());

    @Test
    void onlyAnUnusualRetryerOfFeignIsMentionedAndOnce() {
        orders(fast().build(), b -> b.retryer(new Retryer.Default(1, 1, 5))).create("x");
        assertThat(log.messagesOfThisThread()).isEmpty();

        Retryer own = new Retryer() {
            @Override
            public void continueOrPropagate(feign.RetryableException e) {}

            @Override
            @SuppressWarnings("MissingSuperCall")
            public Retryer clone() {
                return this;
            }
        };
        Feign.Builder builder = IdempotentFeign.install(Feign.builder().retryer(own), fast().build());
        target(builder);
        target(builder);
        assertThat(log.messagesOfThisThread()).hasSize(1).allMatch(w -> w.contains("Retryer"));
    }

    @Test
    void capabilityThatDropsOurHandlerIsWarnedAboutOnceAndAnIdIsStillSent() {
        Orders orders = target(
                IdempotentFeign.install(Feign.builder(), fast().build()).addCapability(new DroppingCapability()));
        orders.create("x");
        orders.create("y");
        orders.list();
        assertThat(server.ids().subList(0, 2)).allMatch(id -> id.matches("\"[0-9a-f-]{36}\""));
        assertThat(Set.copyOf(server.ids())).hasSize(3);
        assertThat(log.messagesOfThisThread())
                .hasSize(1)
                .allMatch(w -> w.contains("IdempotentFeign.install(builder) last"));
    }

    /** A capability like Resilience4jFeign's, which ignores the factory that it replaces. Public because Feign calls it by reflection. */
    public static final class DroppingCapability implements Capability {
        @Override
        public InvocationHandlerFactory enrich(InvocationHandlerFactory factory) {
            return new InvocationHandlerFactory.Default();
        }
    }

    @Test
    void handlerThatCopiesTheArgumentsKeepsIdAndScope() {
        InvocationHandlerFactory copying = (target, dispatch) -> (proxy, method, args) -> {
            try {
                return dispatch.get(method).invoke(args.clone());
            } catch (feign.FeignException e) {
                return dispatch.get(method).invoke(args.length == 0 ? null : args.clone());
            }
        };
        Orders orders = orders(fast().build(), b -> b.invocationHandlerFactory(copying));
        server.respond(Reply.status(400), Reply.ok("ok"), Reply.status(400));
        io.idempotence.client.IdempotenceScope.with(io.idempotence.IdempotenceId.of("job"), () -> orders.create("x"));
        orders.tick();
        assertThat(server.ids().subList(0, 2)).containsExactly("\"job\"", "\"job\"");
        assertThat(server.ids().get(2)).isEqualTo(server.ids().get(3)).isNotEqualTo("\"job\"");
        assertThat(log.messagesOfThisThread()).isEmpty();
    }

    @Test
    void handlerThatSplitsACallMakesSeveralCallsWithSeveralIds() {
        InvocationHandlerFactory splitting = (target, dispatch) -> (proxy, method, args) -> {
            StringBuilder responses = new StringBuilder();
            for (String part : ((String) args[0]).split(",")) {
                responses.append(dispatch.get(method).invoke(new Object[] {part}));
            }
            return responses.toString();
        };
        orders(fast().build(), b -> b.invocationHandlerFactory(splitting)).create("a,b");
        assertThat(server.requests().stream().map(TestServer.Received::body)).containsExactly("a", "b");
        assertThat(Set.copyOf(server.ids())).hasSize(2);
    }

    @Test
    void handlerThatCopiesTheArgumentsOnAnotherThreadIsWarnedAboutAndTheIdHoldsWithinOurRetries() {
        server.respond(Reply.status(503));
        InvocationHandlerFactory copying = (target, dispatch) ->
                (proxy, method, args) -> java.util.concurrent.CompletableFuture.supplyAsync(() -> {
                            try {
                                return dispatch.get(method).invoke(args.clone());
                            } catch (Throwable t) {
                                throw new IllegalStateException(t);
                            }
                        })
                        .join();
        orders(fast().build(), b -> b.invocationHandlerFactory(copying)).create("x");
        assertThat(server.ids()).hasSize(2);
        assertThat(Set.copyOf(server.ids())).hasSize(1);
        assertThat(log.messages())
                .filteredOn(w -> w.contains("copy of the arguments"))
                .hasSize(1);
    }

    /** As the circuit breaker of Spring Cloud does, with a time limit of its own. */
    @Test
    void handlerThatGivesUpWhileTheRequestIsInFlightEndsInTheUnknown() {
        ExecutorService threads = Executors.newCachedThreadPool();
        CountDownLatch received = new CountDownLatch(1);
        server.respond(Reply.hang().before(received::countDown));
        InvocationHandlerFactory impatient = (target, dispatch) -> (proxy, method, args) -> {
            threads.submit(() -> {
                try {
                    return dispatch.get(method).invoke(args);
                } catch (Throwable e) {
                    throw new IllegalStateException(e);
                }
            });
            received.await();
            throw new TimeoutException("too late");
        };
        try {
            assertThatThrownBy(() -> orders(fast().build(), b -> b.invocationHandlerFactory(impatient))
                            .create("x"))
                    .isInstanceOf(OutcomeUnknown.class)
                    .hasCauseInstanceOf(TimeoutException.class);
        } finally {
            threads.shutdownNow();
        }
    }

    private Throwable endOf(UnaryOperator<Exception> replacing) {
        server.respond(Reply.status(504));
        InvocationHandlerFactory replacingAll = (target, dispatch) -> (proxy, method, args) -> {
            try {
                return dispatch.get(method).invoke(args);
            } catch (Exception e) {
                throw replacing.apply(e);
            }
        };
        return catchThrowable(() -> orders(fast().maxAttempts(1).build(), b -> b.invocationHandlerFactory(replacingAll))
                .create("x"));
    }

    @Test
    void handlerThatReplacesAnUnknownOutcomeDoesNotHideIt() {
        assertThat(endOf(unknown -> new IllegalStateException("service down")))
                .isInstanceOf(OutcomeUnknown.class)
                .hasCauseInstanceOf(IllegalStateException.class);
        assertThat(endOf(unknown -> new IllegalStateException("service down", unknown)))
                .isExactlyInstanceOf(IllegalStateException.class)
                .hasCauseInstanceOf(FeignOutcomeUnknownException.class);
    }

    @Test
    void handlerMayReplaceTheResponseOfTheOperation() {
        server.respond(Reply.status(422));
        InvocationHandlerFactory mapping = (target, dispatch) -> (proxy, method, args) -> {
            try {
                return dispatch.get(method).invoke(args);
            } catch (feign.FeignException.UnprocessableEntity e) {
                throw new IllegalArgumentException("declined");
            }
        };
        assertThatThrownBy(() -> orders(fast().build(), b -> b.invocationHandlerFactory(mapping))
                        .create("x"))
                .isInstanceOf(IllegalArgumentException.class);
    }

    @Test
    void interceptorsSetAfterwardsWouldUnprotectSoTheCallFails() {
        Orders orders =
                target(IdempotentFeign.install(Feign.builder(), fast().build()).requestInterceptors(List.of()));
        assertThatThrownBy(() -> orders.create("x"))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("requestInterceptors");
        assertThat(server.requests()).isEmpty();
    }

    @Test
    void installingTwiceIsRefused() {
        Feign.Builder builder = IdempotentFeign.install(Feign.builder(), fast().build());
        assertThatThrownBy(() -> IdempotentFeign.install(builder, fast().build()))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("called twice");
        AsyncFeign.AsyncBuilder<Object> async = IdempotentFeign.install(AsyncFeign.builder(), fast().build());
        assertThatThrownBy(() -> IdempotentFeign.install(async, fast().build()))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("called twice");
    }

    static List<Feign.Builder> unsupportedBuilders() {
        return List.of(new feign.reactive.FakeReactorBuilder(), new feign.hystrix.FakeHystrixBuilder());
    }

    @ParameterizedTest
    @MethodSource("unsupportedBuilders")
    void buildersThatDropWhatIsInstalledAreRefused(Feign.Builder unsupported) {
        assertThatThrownBy(() -> IdempotentFeign.install(unsupported, fast().build()))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining(unsupported.getClass().getName());
    }

    @Test
    void clientThatTalksOnAnotherThreadIsStillObserved() {
        server.respond(Reply.status(429), Reply.refusal("key-reused", 422));
        Orders orders =
                target(IdempotentFeign.install(Feign.builder(), fast().build()).addCapability(new HoppingCapability()));
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(FeignRequestRefusedException.class);
        assertThat(server.requests()).hasSize(2);
        assertThat(events.get(0).requests()).isEqualTo(2);
    }

    /** A capability whose client sends on another thread. Public because Feign calls it by reflection. */
    public static final class HoppingCapability implements Capability {
        @Override
        public feign.Client enrich(feign.Client client) {
            return (request, options) -> java.util.concurrent.CompletableFuture.supplyAsync(() -> {
                        try {
                            return client.execute(request, options);
                        } catch (java.io.IOException e) {
                            throw new java.io.UncheckedIOException(e);
                        }
                    })
                    .join();
        }
    }

    @Test
    void oneArgumentInstallLoadsTheConfig() {
        warmUp();
        target(IdempotentFeign.install(Feign.builder())).create("x");
        assertThat(server.ids().get(0)).matches("\"[0-9a-f-]{36}\"");
    }

    @Test
    void settingsOfOneClientCount() {
        server.respond(Reply.status(503));
        Orders orders = orders(fast().client("orders", c -> c.maxAttempts(1)).build());
        assertThatThrownBy(() -> orders.create("x")).isInstanceOf(feign.FeignException.class);
        assertThat(server.requests()).hasSize(1);
    }

    @Test
    void retryOfTheRegistryIsUsedFromTheNextCallOn() {
        RetryRegistry registry = RetryRegistry.ofDefaults();
        Orders orders = orders(fast().retryRegistry(registry).build());
        registry.retry(
                "orders#create",
                RetryConfig.custom()
                        .maxAttempts(5)
                        .waitDuration(Duration.ofMillis(1))
                        .build());
        server.respond(Reply.status(503), Reply.status(503), Reply.status(503), Reply.status(503));
        assertThat(orders.create("x")).isEqualTo("ok");
        assertThat(server.requests()).hasSize(5);
        assertThat(registry.retry("orders#create").getMetrics().getNumberOfSuccessfulCallsWithRetryAttempt())
                .isEqualTo(1);
    }

    @Test
    void resilience4jRetryAroundTheProxyIsANewCallEachTimeUnlessInAScope() throws Throwable {
        server.respond(Reply.status(400), Reply.ok("ok"), Reply.status(400), Reply.ok("ok"));
        Orders orders = orders();
        Retry outer = Retry.of(
                "outer", RetryConfig.custom().waitDuration(Duration.ofMillis(1)).build());
        outer.executeCheckedSupplier(() -> orders.create("x"));
        assertThat(Set.copyOf(server.ids())).hasSize(2);
        outer.executeCheckedSupplier(() -> io.idempotence.client.IdempotenceScope.with(
                io.idempotence.IdempotenceId.of("job"), () -> orders.create("x")));
        assertThat(server.ids().subList(2, 4)).containsExactly("\"job\"", "\"job\"");
    }

    /** An outcome that is unknown was a RetryableException: a usual retry on that type paid again, under another ID. */
    @Test
    void retryOfFeignsRetryableExceptionsAroundTheProxyDoesNotRepeatACallInDoubt() {
        server.respond(Reply.status(504), Reply.status(504), Reply.status(504));
        Orders orders = orders();
        Retry outer = Retry.of(
                "outer",
                RetryConfig.custom()
                        .waitDuration(Duration.ofMillis(1))
                        .retryExceptions(feign.RetryableException.class)
                        .build());
        assertThatThrownBy(() -> outer.executeSupplier(() -> orders.create("x")))
                .isInstanceOf(OutcomeUnknown.class)
                .isInstanceOf(feign.FeignException.class);
        assertThat(Set.copyOf(server.ids())).hasSize(1);
    }

    @Test
    void otherCallsAndTheSameUnderItsIdAreNotWarnedAbout() {
        Orders orders = orders(fast().maxAttempts(1).build());
        server.respond(Reply.status(504));
        IdempotenceId id = catchThrowableOfType(FeignOutcomeUnknownException.class, () -> orders.create("x"))
                .id();
        orders.create("y");
        orders.tick();
        IdempotenceScope.with(id, () -> orders.create("x"));
        orders.create("x");
        assertThat(log.messagesOfThisThread()).noneMatch(line -> line.contains("IdempotenceScope"));
    }

    @Test
    void timeoutsAreCutButNeverToNoLimit() {
        Request.Options cut =
                FeignExchange.clip(readTimeout(0), 0, HttpClientTraits.of(new Client.Default(null, null)));
        assertThat(cut.readTimeoutMillis()).isEqualTo(1);
        assertThat(cut.connectTimeoutMillis()).isEqualTo(1);
        Request.Options whole =
                FeignExchange.clip(readTimeout(100), 60_000, HttpClientTraits.of(new Client.Default(null, null)));
        assertThat(whole.readTimeoutMillis()).isEqualTo(100);
        assertThat(whole.connectTimeoutMillis()).isEqualTo(5_000);
    }
}
