package io.idempotence.it.server;

import static io.idempotence.it.container.Http.refusal;
import static io.idempotence.it.container.Http.replayed;
import static io.idempotence.it.container.Http.request;
import static io.idempotence.it.container.Http.text;
import static io.idempotence.it.wire.Latches.awaitLatch;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.it.container.Http;
import io.idempotence.it.container.ServletServer;
import io.idempotence.server.Idempotence;
import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.server.storage.FaultyStorage;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.AsyncEvent;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.ServletContext;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.net.http.HttpResponse;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Requests whose asynchronous handler exceeds the timeout of the container. */
class AsyncTimeoutsIT extends FilterTestBase {
    /** One before which a busy machine has ended the handler. */
    private static final long LONGER_TIMEOUT_MILLIS = 2_500;

    @Test
    @DisplayName("T13, T18: an async timeout without a response is unknown, for the work may still run")
    void anAsyncTimeoutWithoutAResponseIsUnknownForTheWorkMayStillRun() {
        ServletServer server = serve((request, response) -> request.startAsync().setTimeout(SHORT_TIMEOUT_MILLIS));
        assertThat(call(server).statusCode()).isGreaterThanOrEqualTo(500);
        await().until(() -> "outcome-unknown".equals(refusal(call(server))));
        assertThat(runs).hasValue(1);
    }

    @Test
    @DisplayName("a timeout of the container while the end is recorded does not make the handler fail")
    void aTimeoutWhileTheEndIsRecordedDoesNotMakeTheHandlerFail() throws Exception {
        CountDownLatch timedOut = new CountDownLatch(1);
        CompletableFuture<Void> completed = new CompletableFuture<>();
        FaultyStorage slow = completingAfter(timedOut);
        Idempotence idempotence = idempotence(slow);
        CountDownLatch dispatched = new CountDownLatch(1);
        ServletServer server = start(
                (request, response) -> {
                    AsyncContext async = request.startAsync();
                    async.setTimeout(LONGER_TIMEOUT_MILLIS);
                    async.addListener(new AsyncEnds() {
                        @Override
                        public void onComplete(AsyncEvent event) {
                            timedOut.countDown();
                        }
                    });
                    executor.execute(() -> {
                        respond(async, 201, "paid");
                        awaitLatch(dispatched);
                        try {
                            async.complete();
                            completed.complete(null);
                        } catch (Throwable e) {
                            completed.completeExceptionally(e);
                        }
                    });
                },
                context -> {
                    countFirstDispatches(context, dispatched);
                    IdempotenceFilter.install(context, idempotence);
                });
        call(server);
        completed.get(60, TimeUnit.SECONDS);
        HttpResponse<byte[]> second = awaitEnd(server);
        assertThat(replayed(second)).isTrue();
        assertThat(second.statusCode()).isEqualTo(201);
        assertThat(text(second)).isEqualTo("paid");
        assertThat(runs).hasValue(1);
    }

    @ParameterizedTest
    @ValueSource(strings = {"written", "flushed", "closed", "error"})
    @DisplayName(
            "a response that is late because its end is being recorded never reaches the next request of the connection")
    void aLateResponseNeverReachesTheNextRequestOfTheConnection(String way) throws Exception {
        CountDownLatch nextBegan = new CountDownLatch(1);
        CompletableFuture<Void> completed = new CompletableFuture<>();
        FaultyStorage slow = completingAfter(nextBegan);
        CountDownLatch dispatched = new CountDownLatch(1);
        Idempotence idempotence = idempotence(slow);
        ServletServer server = start(
                (request, response) -> {
                    if (request.getRequestURI().equals("/next")) {
                        nextBegan.countDown();
                        completed.handle((nothing, thrown) -> thrown).join();
                        respond(response, 202, "next");
                        return;
                    }
                    AsyncContext async = request.startAsync();
                    async.setTimeout(LONGER_TIMEOUT_MILLIS);
                    executor.execute(() -> {
                        try {
                            end((HttpServletResponse) async.getResponse(), way);
                            awaitLatch(dispatched);
                            async.complete();
                            completed.complete(null);
                        } catch (Throwable e) {
                            completed.completeExceptionally(e);
                        }
                    });
                },
                context -> {
                    countFirstDispatches(context, dispatched);
                    IdempotenceFilter.install(context, idempotence);
                });
        callThatMayBeCut(server);
        HttpResponse<byte[]> second = Http.send(Http.request("GET", server.uri("/next"), null, ""));
        assertThat(second.statusCode()).isEqualTo(202);
        assertThat(text(second)).isEqualTo("next");
        completed.get(60, TimeUnit.SECONDS);
        HttpResponse<byte[]> retried = awaitEnd(server);
        assertThat(replayed(retried)).isTrue();
        assertThat(retried.statusCode()).isEqualTo(way.equals("error") ? 422 : 201);
        assertThat(runs).hasValue(2);
    }

    private static FaultyStorage completingAfter(CountDownLatch latch) {
        return new FaultyStorage(redisStorage()).before((call, key) -> {
            if (call == FaultyStorage.Call.COMPLETE) {
                awaitLatch(latch);
            }
        });
    }

    private static void countFirstDispatches(ServletContext context, CountDownLatch dispatched) {
        inFront(context, (request, response, chain) -> {
            chain.doFilter(request, response);
            dispatched.countDown();
        });
    }

    private static void end(HttpServletResponse response, String way) throws IOException {
        if (way.equals("error")) {
            response.sendError(422, "no money");
            return;
        }
        respond(response, 201, "paid");
        if (way.equals("flushed")) {
            response.flushBuffer();
        } else if (way.equals("closed")) {
            response.getOutputStream().close();
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    @DisplayName("T13, T18: an async timeout in the middle of a response is unknown, for the work may still run")
    void anAsyncTimeoutInTheMiddleOfAResponseIsUnknown(boolean oversize) {
        String part = "x".repeat(50_000);
        Idempotence idempotence = idempotence();
        ServletServer server = start(
                (request, response) -> {
                    AsyncContext async = oversize ? request.startAsync() : request.getAsyncContext();
                    async.setTimeout(SHORT_TIMEOUT_MILLIS);
                    respond(response, 200, part);
                    response.flushBuffer();
                },
                context -> {
                    inFront(context, (request, response, chain) -> {
                        if (!oversize) {
                            request.startAsync();
                        }
                        chain.doFilter(request, response);
                    });
                    IdempotenceFilter.builder(idempotence)
                            .maxResponseBody(oversize ? 10_000 : 100_000)
                            .build()
                            .install(context);
                });
        callThatMayBeCut(server);
        assertThat(refusal(awaitEnd(server))).isEqualTo("outcome-unknown");
        assertThat(runs).hasValue(1);
    }

    @Test
    @DisplayName("T13, T18: an async timeout whose dispatch fails is unknown, for the work may still run")
    void anAsyncTimeoutWhoseDispatchFailsIsUnknownForTheWorkMayStillRun() {
        ServletServer server = serve((request, response) -> {
            if (request.getDispatcherType() == DispatcherType.ASYNC) {
                throw new ServletException("timed out");
            }
            AsyncContext async = request.startAsync();
            async.setTimeout(SHORT_TIMEOUT_MILLIS);
            async.addListener(new AsyncEnds() {
                @Override
                public void onTimeout(AsyncEvent event) {
                    event.getAsyncContext().dispatch();
                }
            });
        });
        assertThat(call(server).statusCode()).isEqualTo(500);
        assertThat(refusal(awaitEnd(server))).isEqualTo("outcome-unknown");
        assertThat(runs).hasValue(1);
    }

    @Test
    @DisplayName("T13, T18: an async timeout with a 503 response is unknown, for the work may still run")
    void anAsyncTimeoutWithA503IsUnknownForTheWorkMayStillRun() {
        ServletServer server = serve((request, response) -> {
            AsyncContext async = request.startAsync();
            async.setTimeout(SHORT_TIMEOUT_MILLIS);
            async.addListener(new AsyncEnds() {
                @Override
                public void onTimeout(AsyncEvent event) {
                    respond(event.getAsyncContext(), 503, "timed out");
                    event.getAsyncContext().complete();
                }
            });
        });
        assertThat(text(call(server))).isEqualTo("timed out");
        assertThat(refusal(call(server))).isEqualTo("outcome-unknown");
        assertThat(runs).hasValue(1);
    }
}
