package io.idempotence.client.feign;

import static io.idempotence.client.IdempotenceClientEvent.Result.FAILED;
import static io.idempotence.client.IdempotenceClientEvent.Result.UNKNOWN;
import static io.idempotence.client.feign.AsyncCalls.failure;
import static io.idempotence.client.feign.AsyncCalls.get;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import feign.AsyncClient;
import feign.AsyncFeign;
import feign.Client;
import feign.FeignException;
import feign.RetryableException;
import feign.Target.HardCodedTarget;
import io.idempotence.client.IdempotenceClientAttemptEvent.Outcome;
import io.idempotence.client.feign.AsyncCalls.Wire;
import io.idempotence.client.feign.TestServer.Reply;
import java.lang.reflect.Field;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** The threads that make the attempts of calls that return a future, and the calls whose attempts an executor rejects, drops or delays. */
class AsyncExecutorTest extends FeignTestBase {
    @RegisterExtension
    private final AsyncCalls async = new AsyncCalls(this);

    @Test
    void rejectedLaterAttemptEndsTheCallAsIfAttemptsWereOver() {
        server.respond(Reply.status(503));
        AsyncOrders rejected = async.orders(
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
        AsyncOrders rejected = async.orders(
                fast().listener(event -> thread.set(Thread.currentThread().getName()))
                        .executor(attempt -> {
                            throw new RejectedExecutionException("full");
                        })
                        .build(),
                b -> b);
        assertThat(failure(rejected.create("x"))).isInstanceOf(FeignException.ServiceUnavailable.class);
        assertThat(thread.get()).isNotNull().doesNotContain("DelayScheduler").isNotEqualTo("idempotence-timer");
    }

    /** The deadlines and waits of all calls of the client stopped while that attempt ran, its own deadline included. */
    @Test
    void laterAttemptThatItsExecutorRunsInTheSubmittingThreadDoesNotHoldTheTimers() throws Exception {
        async.warmUp();
        server.respond(Reply.status(429));
        CompletableFuture<Void> over = new CompletableFuture<>();
        List<String> threads = new CopyOnWriteArrayList<>();
        AsyncOrders orders = async.orders(
                fast().deadline(Duration.ofSeconds(3)).executor(Runnable::run).build(),
                b -> b.requestInterceptor(template -> {
                    threads.add(Thread.currentThread().getName());
                    if (threads.size() == 2) {
                        over.join();
                    }
                }));
        try {
            assertThat(failure(orders.create("x")))
                    .isInstanceOf(RetryableException.class)
                    .hasCauseInstanceOf(SocketTimeoutException.class);
            assertThat(threads).hasSize(2).doesNotContain("idempotence-timer");
            assertEnd(FAILED, 2);
        } finally {
            over.complete(null);
        }
    }

    @Test
    void attemptWhosePollIsRejectedIsReported() {
        server.respond(Reply.refusal("in-progress", 409).header("Retry-After-Ms", "1"));
        AsyncOrders rejected = async.orders(
                fast().executor(attempt -> {
                            throw new RejectedExecutionException("full");
                        })
                        .build(),
                b -> b);
        assertThat(failure(rejected.create("x"))).isInstanceOf(FeignOutcomeUnknownException.class);
        assertEnd(UNKNOWN, 1);
        assertThat(attempts).singleElement().satisfies(attempt -> {
            assertThat(attempt.outcome()).isEqualTo(Outcome.IN_PROGRESS);
            assertThat(attempt.waitBeforeNext()).isEmpty();
        });
    }

    /** A wrapper that cannot hand on a security context, say. What the first request came to is not lost with it. */
    @Test
    void laterAttemptWhoseExecutorBreaksEndsTheCallAsIfAttemptsWereOver() {
        Wire wire = new Wire();
        AsyncOrders orders = async.orders(
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
    void laterAttemptThatItsExecutorDropsEndsWithTheDeadline() throws Exception {
        async.warmUp();
        server.respond(Reply.status(503));
        AsyncOrders orders = async.orders(
                fast().deadline(Duration.ofSeconds(3)).executor(attempt -> {}).build(), b -> b);
        assertThat(failure(orders.create("x"))).isInstanceOf(FeignException.ServiceUnavailable.class);
        assertEnd(FAILED, 1);
    }

    @Test
    void laterAttemptThatItsExecutorBeginsTooLateIsNotSent() throws Exception {
        async.warmUp();
        server.respond(Reply.status(503));
        Duration deadline = Duration.ofSeconds(3);
        Executor late = CompletableFuture.delayedExecutor(deadline.toMillis(), TimeUnit.MILLISECONDS);
        AsyncOrders orders =
                async.orders(fast().deadline(deadline).executor(late).build(), b -> b);
        assertThat(failure(orders.create("x"))).isInstanceOf(FeignException.ServiceUnavailable.class);
        assertThat(server.requests()).hasSize(1);
        assertEnd(FAILED, 1);
    }

    @Test
    void clientsExecutorThatRejectsSentNothing() {
        async.threads.shutdown();
        assertThat(failure(async.orders().create("x"))).isInstanceOf(RejectedExecutionException.class);
        assertEnd(FAILED, 1);
        assertThat(events.get(0).id()).isPresent();
    }

    /** It fills the future of a request that was sent. */
    @Test
    void requestWhoseResponseTheClientsExecutorRejectsIsInDoubt() {
        AsyncClient<Object> sockets = new AsyncClient.Default<>(new Client.Default(null, null), async.threads);
        ExecutorService stopped = Executors.newSingleThreadExecutor();
        stopped.shutdown();
        AsyncOrders orders = async.orders(
                fast().maxAttempts(1).build(),
                b -> b.client((request, options, context) ->
                        sockets.execute(request, options, context).thenApplyAsync(response -> response, stopped)));
        assertThat(failure(orders.create("x")))
                .isInstanceOf(FeignOutcomeUnknownException.class)
                .hasCauseInstanceOf(RejectedExecutionException.class);
        assertThat(server.requests()).hasSize(1);
        assertEnd(UNKNOWN, 1);
    }

    /** Requests may be decoded there, with classes of the application. */
    @Test
    void threadsOfTheDefaultClientHaveTheContextOfWhoBuiltIt() throws Exception {
        assumeThat(AsyncFeign.AsyncBuilder.class.getDeclaredFields())
                .as("Feign makes its own default client after capabilities were asked")
                .extracting(Field::getName)
                .contains("executorService");
        // A response that comes before Feign awaits it is decoded by the caller.
        CompletableFuture<Void> awaited = new CompletableFuture<>();
        server.respond(Reply.ok("ok").before(awaited::join));
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
        CompletableFuture<String> response = get(called);
        awaited.complete(null);
        get(response);
        assertThat(seen.get()).isSameAs(Thread.currentThread().getContextClassLoader());
    }
}
