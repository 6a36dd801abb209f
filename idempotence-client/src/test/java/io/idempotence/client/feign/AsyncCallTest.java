package io.idempotence.client.feign;

import static io.idempotence.client.IdempotenceClientEvent.Result.FAILED;
import static io.idempotence.client.IdempotenceClientEvent.Result.UNKNOWN;
import static io.idempotence.client.feign.AsyncCalls.failure;
import static io.idempotence.client.feign.AsyncCalls.get;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import feign.AsyncClient;
import feign.AsyncFeign;
import feign.Client;
import feign.FeignException;
import feign.InvocationHandlerFactory;
import feign.RetryableException;
import feign.Retryer;
import feign.Target.HardCodedTarget;
import feign.codec.EncodeException;
import io.idempotence.IdempotenceId;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.feign.AsyncCalls.Wire;
import io.idempotence.client.feign.TestServer.Reply;
import java.net.ConnectException;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.time.Instant;
import java.util.HashSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Calls that return a future, for which no thread waits. The contracts of integration-tests cover what they share with other calls. */
class AsyncCallTest extends FeignTestBase {
    private final CountDownLatch ended = new CountDownLatch(1);

    @RegisterExtension
    private final AsyncCalls async = new AsyncCalls(this);

    @RegisterExtension
    private final SilentLog log = new SilentLog("io.idempotence.client.feign.IdempotentFeign");

    @Test
    void failureOfAnEncoderIsInTheFuture() {
        AsyncOrders brokenEncoder = async.orders(
                fast().build(),
                b -> b.encoder((object, type, template) -> {
                    throw new IllegalStateException("no");
                }));
        assertThat(failure(brokenEncoder.create("x"))).isInstanceOf(EncodeException.class);
        assertEnd(FAILED, 1);
    }

    /** Feign's own client catches exceptions only. */
    @Test
    void errorOfTheHttpClientIsInTheFuture() {
        Client broken = (request, options) -> {
            throw new NoClassDefFoundError("tls");
        };
        AsyncOrders orders =
                async.orders(fast().build(), b -> b.client(new AsyncClient.Default<>(broken, async.threads)));
        assertThat(failure(orders.create("x"))).isInstanceOf(NoClassDefFoundError.class);
        assertEnd(UNKNOWN, 1);
    }

    @Test
    void requestRepeatedByFeignsRetryerStaysInsideTheCall() throws Exception {
        server.respond(Reply.status(503).header("Retry-After", "0"));
        AsyncOrders orders = async.orders(fast().build(), b -> b.retryer(new Retryer.Default(1, 1, 2)));
        assertThat(get(orders.list())).isEqualTo("ok");
        assertThat(server.requests()).hasSize(2);
        assertThat(log.messages()).isEmpty();
    }

    @Test
    void scopeHoldsForLaterAttemptsOnOtherThreads() throws Exception {
        server.respond(Reply.status(503), Reply.status(503));
        CompletableFuture<String> response = IdempotenceScope.with(
                IdempotenceId.of("job-1"), () -> async.orders().create("x"));
        assertThat(get(response)).isEqualTo("ok");
        assertThat(server.ids()).containsOnly("\"job-1\"").hasSize(3);
    }

    /** Its caller waited for a while, and makes it again: the first request may have been executed. */
    @Test
    void callStillInFlightLeavesItsScopeInDoubt() {
        Wire wire = new Wire();
        AsyncOrders orders = async.orders(fast().maxAttempts(1).build(), b -> b.client(wire));
        IdempotenceScope.with(IdempotenceId.of("job-1"), () -> {
            Instant before = Instant.now();
            CompletableFuture<String> first = orders.create("x");
            Instant after = Instant.now();
            CompletableFuture<String> second = orders.create("x");
            wire.fail(1, new ConnectException("refused"));
            assertThat(failure(second))
                    .isInstanceOfSatisfying(
                            FeignOutcomeUnknownException.class,
                            unknown -> assertThat(unknown.firstSentAt()).isBetween(before, after));
            wire.fail(0, new ConnectException("refused"));
            assertThat(failure(first)).isInstanceOf(FeignOutcomeUnknownException.class);
        });
    }

    /** Both began while nothing was in flight; the one that ends last was the only one that may have been executed. */
    @Test
    void callThatIsSentLaterLeavesAnEarlierOneOfItsScopeInDoubt() {
        Wire wire = new Wire();
        AsyncOrders orders = async.orders(fast().maxAttempts(1).build(), b -> b.client(wire));
        IdempotenceScope.with(IdempotenceId.of("job-1"), () -> {
            CompletableFuture<String> first = orders.create("x");
            CompletableFuture<String> second = orders.create("x");
            wire.fail(0, new ConnectException("refused"));
            assertThat(failure(first)).isInstanceOf(FeignOutcomeUnknownException.class);
            wire.fail(1, new SocketTimeoutException("read timed out"));
            assertThat(failure(second)).isInstanceOf(FeignOutcomeUnknownException.class);
        });
    }

    @Test
    void callThatCertainlyWasNotExecutedLeavesNoDoubtInItsScope() {
        String nobody = nobody();
        AsyncOrders orders = async.orders(
                fast().maxAttempts(1).build(), b -> b.requestInterceptor(template -> template.target(nobody)));
        IdempotenceScope.with(IdempotenceId.of("job-1"), () -> {
            for (int i = 0; i < 2; i++) {
                assertThat(failure(orders.create("x"))).isExactlyInstanceOf(RetryableException.class);
            }
        });
    }

    /** The response came when its caller did not wait for it any more. */
    @Test
    void callWithAResponseIsNotReportedAsOneThatWasNotExecuted() throws Exception {
        AtomicInteger requests = new AtomicInteger();
        AsyncClient<Object> sockets = new AsyncClient.Default<>(new Client.Default(null, null), async.threads);
        AsyncOrders orders = async.orders(
                fast().maxAttempts(1).build(),
                b -> b.client((request, options, context) -> requests.incrementAndGet() == 1
                        ? sockets.execute(request, options, context)
                        : CompletableFuture.failedFuture(new ConnectException("refused"))));
        IdempotenceScope.<@Nullable Void, Exception>with(IdempotenceId.of("job-1"), () -> {
            assertThat(get(orders.create("x"))).isEqualTo("ok");
            assertThat(failure(orders.create("x"))).isInstanceOf(FeignOutcomeUnknownException.class);
            return null;
        });
    }

    @Test
    void plainReturnTypesAndDefaultMethodsWorkAsWell() throws Exception {
        server.respond(Reply.status(503));
        assertThat(async.orders().now("x")).isEqualTo("ok");
        assertThat(server.ids()).hasSize(2);
        assertThat(new HashSet<>(server.ids())).hasSize(1);
        assertThat(get(async.orders().twice())).isEqualTo("okok");
        assertThat(new HashSet<>(server.ids())).hasSize(3);
    }

    @Test
    void builderWithoutClientGetsOne() throws Exception {
        AsyncOrders orders = IdempotentFeign.install(AsyncFeign.builder(), fast().build())
                .target(new HardCodedTarget<>(AsyncOrders.class, "orders", server.url()));
        server.respond(Reply.status(503));
        assertThat(get(orders.create("x"))).isEqualTo("ok");
        assertThat(new HashSet<>(server.ids())).hasSize(1);
    }

    /** A metrics library of the wrong version, say. */
    @Test
    void errorOfAListenerDoesNotLeaveTheFutureOpen() throws Exception {
        AsyncOrders orders = async.orders(
                IdempotenceClientConfig.builder()
                        .deadline(Duration.ofMinutes(2))
                        .listener(event -> {
                            throw new NoSuchMethodError("listener");
                        })
                        .build(),
                b -> b);
        assertThat(get(orders.create("x"))).isEqualTo("ok");
    }

    @Test
    void exceptionOfAListenerOrACallbackDoesNotLoseTheCall() {
        AsyncOrders orders = async.orders(
                IdempotenceClientConfig.builder()
                        .deadline(Duration.ofMinutes(2))
                        .listener(event -> {
                            ended.countDown();
                            throw new IllegalStateException("listener");
                        })
                        .build(),
                b -> b);
        assertThatThrownBy(() -> orders.create("x")
                        .thenApply(response -> {
                            throw new IllegalArgumentException("callback");
                        })
                        .join())
                .isInstanceOf(CompletionException.class)
                .hasRootCauseMessage("callback");
        assertThat(ended.getCount()).isZero();
    }

    /** As a retry over a circuit breaker for futures: the second run is refused when the first one has failed. */
    private static InvocationHandlerFactory runsOnceAndRefusesTheSecondRun() {
        return (target, dispatch) -> (proxy, method, args) -> {
            AtomicInteger runs = new AtomicInteger();
            Supplier<CompletionStage<?>> run = () -> {
                if (runs.getAndIncrement() > 0) {
                    return CompletableFuture.failedFuture(new RejectedExecutionException("open"));
                }
                try {
                    return (CompletionStage<?>) dispatch.get(method).invoke(args);
                } catch (Throwable e) {
                    return CompletableFuture.failedFuture(e);
                }
            };
            return run.get()
                    .handle((value, thrown) -> thrown == null ? CompletableFuture.completedFuture(value) : run.get())
                    .thenCompose(next -> next);
        };
    }

    @Test
    void futureInDoubtWhoseNextRunALayerRefusesEndsInTheUnknown() {
        server.respond(Reply.status(504), Reply.status(404));
        AsyncOrders orders = async.orders(
                fast().maxAttempts(1).build(), b -> b.invocationHandlerFactory(runsOnceAndRefusesTheSecondRun()));
        assertThat(failure(orders.create("x")))
                .isInstanceOf(FeignOutcomeUnknownException.class)
                .hasCauseInstanceOf(RejectedExecutionException.class);
        assertThat(failure(orders.create("y"))).isInstanceOf(RejectedExecutionException.class);
        server.respond(Reply.status(500));
        assertThat(failure(orders.create("z"))).isInstanceOf(FeignException.InternalServerError.class);
    }
}
