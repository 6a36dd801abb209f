package io.idempotence.it.server;

import static io.idempotence.it.container.Http.request;
import static io.idempotence.it.container.Http.text;
import static io.idempotence.it.wire.Latches.awaitLatch;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.it.container.Http;
import io.idempotence.it.container.ServletServer;
import io.idempotence.server.Idempotence;
import io.idempotence.server.IdempotenceEvent;
import io.idempotence.server.servlet.IdempotenceFilter;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.WriteListener;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpServletResponseWrapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** Requests whose asynchronous processing a filter in front has started. */
class AsyncInFrontIT extends FilterTestBase {
    @Test
    void asyncProcessingThatAFilterInFrontHasStartedReachesBothCallers() {
        CountDownLatch dispatched = new CountDownLatch(1);
        ServletServer server = serveBehind(
                (request, response, chain) -> {
                    request.startAsync();
                    chain.doFilter(request, response);
                    dispatched.countDown();
                },
                (request, response) -> {
                    AsyncContext async = request.getAsyncContext();
                    executor.execute(() -> {
                        awaitLatch(dispatched);
                        try {
                            respond(response, 201, "paid");
                        } catch (IOException e) {
                            throw new UncheckedIOException(e);
                        }
                        async.complete();
                    });
                });
        HttpResponse<byte[]> first = call(server);
        assertThat(first.statusCode()).isEqualTo(201);
        assertThat(text(first)).isEqualTo("paid");
        awaitReplay(server, first);
        assertThat(runs).hasValue(1);
    }

    /** A response whose first bytes leave only after something else was done. */
    private static final class SlowAtFirst extends HttpServletResponseWrapper {
        private final Runnable beforeTheFirst;
        private boolean begun;

        SlowAtFirst(HttpServletResponse response, Runnable beforeTheFirst) {
            super(response);
            this.beforeTheFirst = beforeTheFirst;
        }

        @Override
        public ServletOutputStream getOutputStream() throws IOException {
            ServletOutputStream out = super.getOutputStream();
            return new ServletOutputStream() {
                @Override
                public void write(int b) throws IOException {
                    write(new byte[] {(byte) b}, 0, 1);
                }

                @Override
                public void write(byte[] bytes, int offset, int length) throws IOException {
                    if (!begun) {
                        begun = true;
                        beforeTheFirst.run();
                    }
                    out.write(bytes, offset, length);
                }

                @Override
                public void flush() throws IOException {
                    out.flush();
                }

                @Override
                public boolean isReady() {
                    return out.isReady();
                }

                @Override
                public void setWriteListener(WriteListener listener) {
                    out.setWriteListener(listener);
                }
            };
        }
    }

    @Test
    @DisplayName("P4: what another thread writes while held bytes begin to leave follows them")
    void whatIsWrittenWhileHeldBytesLeaveFollowsThem() {
        CountDownLatch leaving = new CountDownLatch(1);
        CountDownLatch written = new CountDownLatch(1);
        AtomicReference<Thread> writing = new AtomicReference<>();
        ServletServer server = serveBehind(
                (request, response, chain) -> {
                    request.startAsync();
                    chain.doFilter(request, new SlowAtFirst((HttpServletResponse) response, () -> {
                        leaving.countDown();
                        await().until(() -> written.getCount() == 0
                                || (writing.get() != null && writing.get().getState() == Thread.State.WAITING));
                    }));
                },
                (request, response) -> {
                    AsyncContext async = request.getAsyncContext();
                    ServletOutputStream out = response.getOutputStream();
                    out.print("first, ");
                    executor.execute(() -> {
                        awaitLatch(leaving);
                        writing.set(Thread.currentThread());
                        try {
                            out.print("second");
                        } catch (IOException e) {
                            throw new UncheckedIOException(e);
                        }
                        written.countDown();
                        async.complete();
                    });
                });
        HttpResponse<byte[]> first = call(server);
        assertThat(text(first)).isEqualTo("first, second");
        awaitReplay(server, first);
    }

    @Test
    @DisplayName("P4: a response that is delivered while its dispatch ends leaves once")
    void aResponseThatIsDeliveredWhileItsDispatchEndsLeavesOnce() {
        CountDownLatch dispatchEnds = new CountDownLatch(1);
        CountDownLatch delivered = new CountDownLatch(1);
        ServletServer server = serveBehind(
                (request, response, chain) -> {
                    request.startAsync();
                    HttpServletRequest asked = new HttpServletRequestWrapper((HttpServletRequest) request) {
                        @Override
                        public boolean isAsyncStarted() {
                            boolean started = super.isAsyncStarted();
                            dispatchEnds.countDown();
                            awaitLatch(delivered);
                            return started;
                        }
                    };
                    chain.doFilter(asked, new SlowAtFirst((HttpServletResponse) response, delivered::countDown));
                },
                (request, response) -> {
                    AsyncContext async = request.getAsyncContext();
                    respond(response, 201, "paid");
                    executor.execute(() -> {
                        awaitLatch(dispatchEnds);
                        async.complete();
                    });
                });
        HttpResponse<byte[]> first = call(server);
        assertThat(text(first)).isEqualTo("paid");
        awaitReplay(server, first);
    }

    @Test
    @DisplayName(
            "P6: a request that a filter in front holds back and dispatches later is protected, and others are let through")
    void requestThatAFilterInFrontDispatchesLaterIsProtected() {
        AtomicInteger ran = new AtomicInteger();
        Idempotence idempotence = idempotence();
        ServletServer server = start(
                (request, response) -> {
                    ran.incrementAndGet();
                    respond(response, 201, "paid");
                },
                context -> {
                    inFront(context, (request, response, chain) -> {
                        AsyncContext async = request.startAsync();
                        executor.execute(async::dispatch);
                    });
                    IdempotenceFilter.builder(idempotence).build().install(context, "/payments/*");
                });
        HttpResponse<byte[]> first = call(server);
        assertThat(text(first)).isEqualTo("paid");
        assertSameResponse(first, call(server));
        assertThat(ran).hasValue(1);

        HttpResponse<byte[]> elsewhere = Http.send(Http.request("POST", server.uri("/other"), null, "{}"));
        assertThat(text(elsewhere)).isEqualTo("paid");
        assertThat(ran).hasValue(2);
    }

    @Test
    @DisplayName("a duplicate whose async processing a filter in front has started waits all the same")
    void duplicateWhoseAsyncProcessingAFilterInFrontHasStartedWaits() {
        CountDownLatch running = new CountDownLatch(1);
        CountDownLatch mayEnd = new CountDownLatch(1);
        ServletServer server = serveBehind(
                (request, response, chain) -> {
                    AsyncContext async = request.startAsync();
                    chain.doFilter(request, response);
                    async.complete();
                },
                (request, response) -> {
                    running.countDown();
                    awaitLatch(mayEnd);
                    respond(response, 201, "paid");
                });
        CompletableFuture<HttpResponse<byte[]>> first = CompletableFuture.supplyAsync(() -> call(server));
        awaitLatch(running);
        CompletableFuture<HttpResponse<byte[]>> second = CompletableFuture.supplyAsync(
                () -> Http.post(server.uri("/payments"), id, "{\"amount\":5}", "Prefer", "wait=10"));
        await().until(() -> events.contains(IdempotenceEvent.IN_PROGRESS));
        mayEnd.countDown();
        assertThat(text(first.join())).isEqualTo("paid");
        assertThat(text(second.join())).isEqualTo("paid");
        assertThat(runs).hasValue(1);
    }

    @Test
    @DisplayName(
            "a response shows its end if a filter in front may never complete it, even behind one that overrides the stream")
    void responseThatMayNeverBeCompletedHasALength() {
        for (String body : List.of("paid", "")) {
            ServletServer server = serveBehind(
                    (request, response, chain) -> {
                        request.startAsync().setTimeout(5_000);
                        chain.doFilter(request, new SlowAtFirst((HttpServletResponse) response, () -> {}));
                    },
                    (request, response) -> {
                        response.setStatus(201);
                        response.getOutputStream().print(body);
                        request.getAsyncContext().complete();
                    });
            HttpResponse<byte[]> first = call(server);
            assertThat(text(first)).isEqualTo(body);
            HttpResponse<byte[]> second = awaitEnd(server);
            assertSameResponse(first, second);
            assertHasLength(second);

            HttpResponse<byte[]> other = Http.post(server.uri("/payments"), id, "{\"amount\":6}");
            assertThat(Http.refusal(other)).isEqualTo("key-reused");
            assertHasLength(other);
            HttpResponse<byte[]> early = Http.post(server.uri("/payments"), "not a key", "{}");
            assertThat(Http.refusal(early)).isEqualTo("key-invalid");
            assertHasLength(early);
        }
    }

    private static void assertHasLength(HttpResponse<byte[]> response) {
        assertThat(response.headers().firstValue("Content-Length")).hasValue(String.valueOf(response.body().length));
    }
}
