package io.idempotence.client.feign;

import static io.idempotence.client.IdempotenceClientEvent.Result.FAILED;
import static io.idempotence.client.IdempotenceClientEvent.Result.SUCCEEDED;
import static io.idempotence.client.IdempotenceClientEvent.Result.UNKNOWN;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.assertj.core.api.Assumptions.assumeThat;

import feign.AsyncClient;
import feign.AsyncFeign;
import feign.Client;
import feign.FeignException;
import feign.InvocationHandlerFactory;
import feign.MethodInfo;
import feign.Request;
import feign.RequestLine;
import feign.Response;
import feign.RetryableException;
import feign.Retryer;
import feign.Target.HardCodedTarget;
import feign.codec.EncodeException;
import io.idempotence.IdempotenceId;
import io.idempotence.client.AttemptOutcome;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.IdempotenceClientEvent;
import io.idempotence.client.IdempotenceScope;
import io.idempotence.client.feign.TestServer.Reply;
import java.io.IOException;
import java.lang.reflect.Field;
import java.net.ConnectException;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.time.Instant;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import kotlin.coroutines.Continuation;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Calls that return a future, and nobody waits. What they share with others is in the contracts of integration-tests. */
class AsyncCallTest extends FeignTestBase {
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final CountDownLatch ended = new CountDownLatch(1);

    @RegisterExtension
    private final SilentLog log = new SilentLog("io.idempotence.client.feign.IdempotentFeign");

    interface AsyncOrders {
        @RequestLine("POST /orders")
        CompletableFuture<String> create(String body);

        @RequestLine("POST /tick")
        CompletionStage<String> tick();

        @RequestLine("POST /raw")
        CompletableFuture<Response> raw(String body);

        @RequestLine("POST /now")
        String now(String body);

        @RequestLine("GET /orders")
        CompletableFuture<String> list();

        default CompletableFuture<String> twice() {
            return create("a").thenCompose(first -> create("b").thenApply(second -> first + second));
        }
    }

    @AfterEach
    void stopThreads() {
        threads.shutdownNow();
    }

    private AsyncOrders async() {
        return async(fast().build(), builder -> builder);
    }

    private AsyncOrders async(IdempotenceClientConfig config, UnaryOperator<AsyncFeign.AsyncBuilder<Object>> before) {
        AsyncFeign.AsyncBuilder<Object> builder =
                AsyncFeign.builder().client(new AsyncClient.Default<>(new Client.Default(null, null), threads));
        return IdempotentFeign.install(before.apply(builder), config)
                .target(new HardCodedTarget<>(AsyncOrders.class, "orders", server.url()));
    }

    private static <T> T get(CompletionStage<T> stage) throws Exception {
        return stage.toCompletableFuture().get(30, TimeUnit.SECONDS);
    }

    private static Throwable failure(CompletionStage<?> stage) {
        Throwable thrown = catchThrowable(() -> get(stage));
        return thrown instanceof ExecutionException ? thrown.getCause() : thrown;
    }

    private void assertEnd(IdempotenceClientEvent.Result result, int attempts) {
        assertThat(events).hasSize(1);
        assertThat(events.get(0).result()).isEqualTo(result);
        assertThat(events.get(0).attempts()).isEqualTo(attempts);
    }

    @Test
    void failureOfAnEncoderIsInTheFuture() {
        AsyncOrders brokenEncoder = async(
                fast().build(),
                b -> b.encoder((object, type, template) -> {
                    throw new IllegalStateException("no");
                }));
        assertThat(failure(brokenEncoder.create("x"))).isInstanceOf(EncodeException.class);
        assertEnd(FAILED, 1);
    }

    @Test
    void cancellingStopsTheRetriesAndTheRequestThatIsOut() throws Exception {
        CountDownLatch out = new CountDownLatch(1);
        CompletableFuture<Response> wire = new CompletableFuture<>();
        AtomicInteger sent = new AtomicInteger();
        AsyncClient<Object> client = (request, options, context) -> {
            sent.incrementAndGet();
            out.countDown();
            return wire;
        };
        CompletableFuture<String> response =
                async(fast().build(), b -> b.client(client)).create("x");
        out.await();
        assertThat(response.cancel(true)).isTrue();
        assertThat(wire).isCancelled();
        assertThatThrownBy(() -> get(response)).isInstanceOf(CancellationException.class);
        assertThat(sent).hasValue(1);
        // The operation may have been executed, so the listener hears that nothing is certain.
        assertEnd(UNKNOWN, 1);
        assertThat(events.get(0).id()).isPresent();
    }

    @Test
    void cancellingDuringAWaitSendsNothingMore() throws Exception {
        ExecutorService oneThread = Executors.newSingleThreadExecutor();
        CountDownLatch free = new CountDownLatch(1);
        CountDownLatch asked = new CountDownLatch(1);
        try {
            server.respond(Reply.status(503));
            AsyncOrders orders = async(
                    fast().executor(attempt -> oneThread.execute(() -> {
                                asked.countDown();
                                try {
                                    free.await();
                                } catch (InterruptedException e) {
                                    throw new IllegalStateException(e);
                                }
                                attempt.run();
                            }))
                            .build(),
                    b -> b);
            CompletableFuture<String> response = orders.create("x");
            asked.await();
            response.cancel(false);
            free.countDown();
            oneThread.submit(() -> {}).get();
            assertThat(server.requests()).hasSize(1);
        } finally {
            oneThread.shutdownNow();
        }
    }

    @Test
    void callersOwnTimeoutStopsTheRetries() throws Exception {
        server.respond(Reply.hang());
        AsyncOrders orders = async(
                fast().listener(event -> {
                            events.add(event);
                            ended.countDown();
                        })
                        .build(),
                b -> b);
        CompletableFuture<String> response = orders.create("x").orTimeout(200, TimeUnit.MILLISECONDS);
        assertThat(failure(response)).isInstanceOf(TimeoutException.class);
        // A thread that waits for a future is woken before its dependent stages run.
        assertThat(ended.await(30, TimeUnit.SECONDS)).isTrue();
        assertEnd(UNKNOWN, 1);
    }

    @Test
    void rejectedLaterAttemptEndsTheCallAsIfAttemptsWereOver() {
        server.respond(Reply.status(503));
        AsyncOrders rejected = async(
                fast().executor(attempt -> {
                            throw new RejectedExecutionException("full");
                        })
                        .build(),
                b -> b);
        assertThat(failure(rejected.create("x"))).isInstanceOf(FeignException.ServiceUnavailable.class);
        assertEnd(FAILED, 1);
    }

    /** The JVM has one thread for all timers, and a listener or a caller may block. */
    @Test
    void rejectedLaterAttemptDoesNotEndInTheThreadOfTheTimers() {
        server.respond(Reply.status(503));
        AtomicReference<String> thread = new AtomicReference<>();
        AsyncOrders rejected = async(
                fast().listener(event -> thread.set(Thread.currentThread().getName()))
                        .executor(attempt -> {
                            throw new RejectedExecutionException("full");
                        })
                        .build(),
                b -> b);
        assertThat(failure(rejected.create("x"))).isInstanceOf(FeignException.ServiceUnavailable.class);
        assertThat(thread.get()).isNotNull().doesNotContain("DelayScheduler");
    }

    @Test
    void attemptWhosePollIsRejectedIsReported() {
        server.respond(Reply.refusal("in-progress", 409).header("Retry-After-Ms", "1"));
        AsyncOrders rejected = async(
                fast().executor(attempt -> {
                            throw new RejectedExecutionException("full");
                        })
                        .build(),
                b -> b);
        assertThat(failure(rejected.create("x"))).isInstanceOf(FeignOutcomeUnknownException.class);
        assertEnd(UNKNOWN, 1);
        assertThat(attempts).singleElement().satisfies(attempt -> {
            assertThat(attempt.outcome()).isEqualTo(AttemptOutcome.IN_PROGRESS);
            assertThat(attempt.waitBeforeNext()).isEmpty();
        });
    }

    /** A wrapper that cannot hand on a security context, say. What the first request came to is not lost with it. */
    @Test
    void laterAttemptWhoseExecutorBreaksEndsTheCallAsIfAttemptsWereOver() {
        Wire wire = new Wire();
        AsyncOrders orders = async(
                fast().executor(attempt -> {
                            throw new NoClassDefFoundError("context");
                        })
                        .build(),
                b -> b.client(wire));
        CompletableFuture<String> response = orders.create("x");
        wire.fail(0, new SocketTimeoutException("read timed out"));
        assertThat(failure(response)).isInstanceOf(FeignOutcomeUnknownException.class);
        assertEnd(UNKNOWN, 1);
        assertThat(events.get(0).id()).isPresent();
    }

    @Test
    void laterAttemptThatItsExecutorDropsEndsWithTheDeadline() {
        server.respond(Reply.status(503));
        AsyncOrders orders = async(
                fast().deadline(Duration.ofMillis(300)).executor(attempt -> {}).build(), b -> b);
        assertThat(failure(orders.create("x"))).isInstanceOf(FeignException.ServiceUnavailable.class);
        assertEnd(FAILED, 1);
    }

    @Test
    void laterAttemptThatItsExecutorBeginsTooLateIsNotSent() {
        server.respond(Reply.status(503));
        Duration deadline = Duration.ofMillis(300);
        Executor late = CompletableFuture.delayedExecutor(deadline.toMillis(), TimeUnit.MILLISECONDS);
        AsyncOrders orders = async(fast().deadline(deadline).executor(late).build(), b -> b);
        assertThat(failure(orders.create("x"))).isInstanceOf(FeignException.ServiceUnavailable.class);
        assertThat(server.requests()).hasSize(1);
        assertEnd(FAILED, 1);
    }

    @Test
    void clientThatNeverEndsItsRequestLeavesTheCallUnknownWhenTheDeadlineIsOver() {
        Wire wire = new Wire();
        AsyncOrders orders = async(fast().deadline(Duration.ofMillis(300)).build(), b -> b.client(wire));
        assertThat(failure(orders.create("x"))).isInstanceOf(FeignOutcomeUnknownException.class);
        assertEnd(UNKNOWN, 1);
        assertThat(failure(wire.requests.get(0))).isInstanceOf(CancellationException.class);
    }

    @Test
    void deadlineIsNotThatOfACallWithoutAnId() throws Exception {
        Wire wire = new Wire();
        AsyncOrders orders = async(fast().deadline(Duration.ofMillis(1)).build(), b -> b.client(wire));
        CompletableFuture<String> list = orders.list();
        assertThat(failure(orders.create("x"))).isInstanceOf(FeignOutcomeUnknownException.class);
        assertThat(list).isNotDone();
    }

    @Test
    void responseThatNeverEndsLeavesTheCallUnknownWhenTheDeadlineIsOver() {
        Wire wire = new Wire();
        AsyncOrders orders = async(fast().deadline(Duration.ofMillis(300)).build(), b -> b.client(wire));
        CompletableFuture<String> response = orders.create("x");
        StallingBody endless = new StallingBody();
        threads.execute(() -> wire.requests
                .get(0)
                .complete(Response.builder()
                        .status(200)
                        .headers(Map.of())
                        .request(Request.create(Request.HttpMethod.POST, "/orders", Map.of(), null, null, null))
                        .body(endless, null)
                        .build()));
        assertThat(failure(response)).isInstanceOf(FeignOutcomeUnknownException.class);
        assertEnd(UNKNOWN, 1);
        ended.countDown();
    }

    /** Feign's own client catches exceptions only. */
    @Test
    void errorOfTheHttpClientIsInTheFuture() {
        Client broken = (request, options) -> {
            throw new NoClassDefFoundError("tls");
        };
        AsyncOrders orders = async(fast().build(), b -> b.client(new AsyncClient.Default<>(broken, threads)));
        assertThat(failure(orders.create("x"))).isInstanceOf(NoClassDefFoundError.class);
        assertEnd(UNKNOWN, 1);
    }

    /** A socket does not heed the interrupt that comes of it. */
    @Test
    void responseThatComesAfterTheCallWasCancelledIsClosed() throws Exception {
        CountDownLatch out = new CountDownLatch(1);
        CountDownLatch cancelled = new CountDownLatch(1);
        CountDownLatch closed = new CountDownLatch(1);
        Client sockets = new Client.Default(null, null);
        Client deaf = (request, options) -> {
            Response response = sockets.execute(request, options);
            out.countDown();
            while (cancelled.getCount() > 0) {
                try {
                    cancelled.await();
                } catch (InterruptedException e) {
                    // Heard, and not heeded.
                }
            }
            return response.toBuilder()
                    .body(new ClosingBody(response.body(), closed::countDown))
                    .build();
        };
        CompletableFuture<String> response = async(
                        fast().build(), b -> b.client(new AsyncClient.Default<>(deaf, threads)))
                .create("x");
        out.await();
        response.cancel(true);
        cancelled.countDown();
        assertThat(closed.await(30, TimeUnit.SECONDS)).isTrue();
    }

    @Test
    void clientsExecutorThatRejectsSentNothing() {
        threads.shutdown();
        assertThat(failure(async().create("x"))).isInstanceOf(RejectedExecutionException.class);
        assertEnd(FAILED, 1);
        assertThat(events.get(0).id()).isPresent();
    }

    /** It fills the future of a request that was sent. */
    @Test
    void requestWhoseResponseTheClientsExecutorRejectsIsInDoubt() {
        AsyncClient<Object> sockets = new AsyncClient.Default<>(new Client.Default(null, null), threads);
        ExecutorService stopped = Executors.newSingleThreadExecutor();
        stopped.shutdown();
        AsyncOrders orders = async(
                fast().maxAttempts(1).build(),
                b -> b.client((request, options, context) ->
                        sockets.execute(request, options, context).thenApplyAsync(response -> response, stopped)));
        assertThat(failure(orders.create("x")))
                .isInstanceOf(FeignOutcomeUnknownException.class)
                .hasCauseInstanceOf(RejectedExecutionException.class);
        assertThat(server.requests()).hasSize(1);
        assertEnd(UNKNOWN, 1);
    }

    @Test
    void laterRequestOfFeignsOwnRetryerIsNoneOutsideOfTheCall() throws Exception {
        server.respond(Reply.status(503).header("Retry-After", "0"));
        AsyncOrders orders = async(fast().build(), b -> b.retryer(new Retryer.Default(1, 1, 2)));
        assertThat(get(orders.list())).isEqualTo("ok");
        assertThat(server.requests()).hasSize(2);
        assertThat(log.messages()).isEmpty();
    }

    /** Requests may be decoded there, with classes of the application. */
    @Test
    void threadsOfTheDefaultClientHaveTheContextOfWhoBuiltIt() throws Exception {
        assumeThat(AsyncFeign.AsyncBuilder.class.getDeclaredFields())
                .as("Feign makes its own default client after capabilities were asked")
                .extracting(Field::getName)
                .contains("executorService");
        AtomicReference<ClassLoader> seen = new AtomicReference<>();
        AsyncOrders orders = IdempotentFeign.install(
                        AsyncFeign.builder().decoder((response, type) -> {
                            seen.set(Thread.currentThread().getContextClassLoader());
                            return "ok";
                        }),
                        fast().build())
                .target(new HardCodedTarget<>(AsyncOrders.class, "orders", server.url()));
        CompletableFuture<CompletableFuture<String>> called = new CompletableFuture<>();
        Thread caller = new Thread(() -> called.complete(orders.create("x")), "caller");
        caller.setContextClassLoader(new ClassLoader(null) {});
        caller.start();
        get(get(called));
        assertThat(seen.get()).isSameAs(Thread.currentThread().getContextClassLoader());
    }

    @Test
    void scopeHoldsForLaterAttemptsOnOtherThreads() throws Exception {
        server.respond(Reply.status(503), Reply.status(503));
        CompletableFuture<String> response =
                IdempotenceScope.with(IdempotenceId.of("job-1"), () -> async().create("x"));
        assertThat(get(response)).isEqualTo("ok");
        assertThat(server.ids()).containsOnly("\"job-1\"").hasSize(3);
    }

    /** Responds as its test says, and when. */
    private static final class Wire implements AsyncClient<Object> {
        final List<CompletableFuture<Response>> requests = new CopyOnWriteArrayList<>();

        @Override
        public CompletableFuture<Response> execute(Request request, Request.Options options, Optional<Object> context) {
            CompletableFuture<Response> response = new CompletableFuture<>();
            requests.add(response);
            return response;
        }

        void fail(int request, IOException failure) {
            requests.get(request).completeExceptionally(failure);
        }
    }

    /** Its caller waited for a while, and makes it again: the first request may have been executed. */
    @Test
    void callThatIsStillOutLeavesItsScopeInDoubt() {
        Wire wire = new Wire();
        AsyncOrders orders = async(fast().maxAttempts(1).build(), b -> b.client(wire));
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

    /** Both began while nothing was out; the one that ends last was the only one that may have been executed. */
    @Test
    void callThatIsSentLaterLeavesAnEarlierOneOfItsScopeInDoubt() {
        Wire wire = new Wire();
        AsyncOrders orders = async(fast().maxAttempts(1).build(), b -> b.client(wire));
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
        AsyncOrders orders =
                async(fast().maxAttempts(1).build(), b -> b.requestInterceptor(template -> template.target(nobody)));
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
        AsyncClient<Object> sockets = new AsyncClient.Default<>(new Client.Default(null, null), threads);
        AsyncOrders orders = async(
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
        assertThat(async().now("x")).isEqualTo("ok");
        assertThat(server.ids()).hasSize(2);
        assertThat(new HashSet<>(server.ids())).hasSize(1);
        assertThat(get(async().twice())).isEqualTo("okok");
        assertThat(new HashSet<>(server.ids())).hasSize(3);
    }

    @Test
    void deadlineEndsTheAttempts() {
        IntStream.range(0, 100).forEach(i -> server.respond(Reply.status(503)));
        IdempotenceClientConfig config = fast().maxAttempts(100)
                .waitBound(Duration.ofMillis(100))
                .maxWait(Duration.ofMillis(100))
                .jitter(0)
                .deadline(Duration.ofMillis(350))
                .build();
        assertThat(failure(async(config, b -> b).create("x"))).isInstanceOf(FeignException.ServiceUnavailable.class);
        assertThat(server.requests()).hasSizeLessThan(5);
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
        AsyncOrders orders = async(
                IdempotenceClientConfig.builder()
                        .listener(event -> {
                            throw new NoSuchMethodError("listener");
                        })
                        .build(),
                b -> b);
        assertThat(get(orders.create("x"))).isEqualTo("ok");
    }

    @Test
    void exceptionOfAListenerOrACallbackDoesNotLoseTheCall() {
        AsyncOrders orders = async(
                IdempotenceClientConfig.builder()
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

    // ---- layers between the proxy and its attempts

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
        AsyncOrders orders =
                async(fast().maxAttempts(1).build(), b -> b.invocationHandlerFactory(runsOnceAndRefusesTheSecondRun()));
        assertThat(failure(orders.create("x")))
                .isInstanceOf(FeignOutcomeUnknownException.class)
                .hasCauseInstanceOf(RejectedExecutionException.class);
        assertThat(failure(orders.create("y"))).isInstanceOf(RejectedExecutionException.class);
    }

    @Test
    void cancellingTheFutureOfALayerIsHandedDown() {
        CompletableFuture<String> layered = new CompletableFuture<>();
        AsyncOrders orders = async(
                fast().build(),
                b -> b.invocationHandlerFactory((target, dispatch) -> (proxy, method, args) -> layered));
        orders.create("x").cancel(true);
        assertThat(layered).isCancelled();
    }

    // ---- which methods return a future

    interface Base<T> {
        @RequestLine("POST /call")
        T call();
    }

    interface Inheriting extends Base<CompletableFuture<String>> {}

    interface Undeclared {
        @RequestLine("POST /call")
        Object call();
    }

    /** As KotlinMethodInfo does it: what the method declares is not what it returns. */
    private static final class FutureOfString extends MethodInfo {
        FutureOfString() {
            super(String.class, true);
        }
    }

    private AsyncFeign.AsyncBuilder<Object> installed() {
        return IdempotentFeign.install(
                AsyncFeign.builder().client(new AsyncClient.Default<>(new Client.Default(null, null), threads)),
                fast().build());
    }

    /** It was taken for one that waits: the next attempt did not await the one before, which ended in the unknown. */
    @Test
    void futureThatIsATypeArgumentOfTheInheritedInterfaceIsOne() throws Exception {
        server.respond(Reply.status(503), Reply.status(503));
        Inheriting orders = installed().target(Inheriting.class, server.url());
        assertThat(get(orders.call())).isEqualTo("ok");
        assertThat(server.requests()).hasSize(3);
        assertThat(new HashSet<>(server.ids())).hasSize(1);
        assertEnd(SUCCEEDED, 3);
    }

    @Test
    void methodInfoResolverOfTheBuilderDecidesWhatIsAFuture() throws Exception {
        server.respond(Reply.status(503), Reply.status(503));
        Undeclared orders = installed()
                .methodInfoResolver((type, method) -> new FutureOfString())
                .target(Undeclared.class, server.url());
        assertThat(get((CompletionStage<?>) orders.call())).isEqualTo("ok");
        assertThat(server.requests()).hasSize(3);
        assertThat(new HashSet<>(server.ids())).hasSize(1);
        assertEnd(SUCCEEDED, 3);
    }

    interface Suspending {
        @RequestLine("POST /call")
        Object call(String body, Continuation<String> continuation);
    }

    @Test
    void kotlinSuspendFunctionIsRefusedWhenTheClientIsBuilt() {
        AsyncFeign.AsyncBuilder<Object> builder =
                installed().methodInfoResolver((type, method) -> new FutureOfString());
        assertThatThrownBy(() -> builder.target(Suspending.class, server.url()))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("Suspending#call")
                .hasMessageContaining("CompletableFuture");
    }
}
