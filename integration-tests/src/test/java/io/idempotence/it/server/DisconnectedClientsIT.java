package io.idempotence.it.server;

import static io.idempotence.it.container.Http.refusal;
import static io.idempotence.it.container.Http.replayed;
import static io.idempotence.it.container.Http.request;
import static io.idempotence.it.container.Http.text;
import static io.idempotence.it.wire.Latches.awaitLatch;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.idempotence.it.container.Container;
import io.idempotence.it.container.ServletServer;
import io.idempotence.it.container.ServletServer.Handler;
import io.idempotence.server.IdempotenceEvent;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.AsyncEvent;
import jakarta.servlet.http.HttpServletRequest;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Clients that do not wait for their response. */
class DisconnectedClientsIT extends FilterTestBase {
    /** Sends a request whose body has 12 bytes, as much of them as given. */
    private void send(Socket socket, ServletServer server, String body) throws IOException {
        String request = "POST /payments HTTP/1.1\r\nHost: 127.0.0.1:" + server.port() + "\r\nIdempotency-Key: " + id
                + "\r\nContent-Length: 12\r\n\r\n" + body;
        socket.getOutputStream().write(request.getBytes(StandardCharsets.ISO_8859_1));
        socket.getOutputStream().flush();
    }

    @Test
    void aClientThatLeavesDoesNotMakeTheHandlerFail() throws Exception {
        CountDownLatch started = new CountDownLatch(1);
        CountDownLatch mayEnd = new CountDownLatch(1);
        ServletServer server = serve((request, response) -> {
            started.countDown();
            awaitLatch(mayEnd);
            respond(response, 201, "paid");
        });
        try (Socket socket = new Socket("127.0.0.1", server.port())) {
            send(socket, server, "{\"amount\":5}");
            awaitLatch(started);
            socket.setSoLinger(true, 0);
        }
        mayEnd.countDown();
        AtomicReference<HttpResponse<byte[]>> retry = new AtomicReference<>();
        await().until(() -> {
            retry.set(call(server));
            return retry.get().statusCode() != 409;
        });
        assertThat(retry.get().statusCode()).isEqualTo(201);
        assertThat(text(retry.get())).isEqualTo("paid");
        assertThat(replayed(retry.get())).isTrue();
        assertThat(runs).hasValue(1);
    }

    @Test
    @DisplayName("P6: a client that leaves in the middle of its body runs nothing")
    void aClientThatLeavesBeforeItsBodyIsThereRunsNothing() throws Exception {
        ServletServer server = serve((request, response) -> respond(response, 201, text(request)));
        for (boolean reset : new boolean[] {true, false}) {
            try (Socket socket = new Socket("127.0.0.1", server.port())) {
                send(socket, server, "{\"amo");
                if (reset) {
                    socket.setSoLinger(true, 0);
                } else {
                    // Half closed, so that the end of the connection is seen: no response of a handler comes back.
                    socket.shutdownOutput();
                    String response = new String(socket.getInputStream().readAllBytes(), StandardCharsets.ISO_8859_1);
                    assertThat(response).doesNotContain("HTTP/1.1 201");
                }
            }
        }
        HttpResponse<byte[]> whole = call(server);
        assertThat(whole.statusCode()).isEqualTo(201);
        assertThat(text(whole)).isEqualTo("{\"amount\":5}");
        assertThat(replayed(whole)).isFalse();
        assertThat(runs).hasValue(1);
        assertThat(events).containsExactly(IdempotenceEvent.CLAIMED);
    }

    @Test
    @DisplayName("P4: a client that leaves in the middle of its response gets all of it from its next attempt")
    void aClientThatLeavesDuringItsResponseGetsItLater() throws Exception {
        String large = "x".repeat(8 << 20);
        ServletServer server =
                serve((request, response) -> respond(response, 201, large), filter -> filter.maxResponseBody(16 << 20));
        try (Socket socket = new Socket()) {
            socket.setReceiveBufferSize(4096);
            socket.connect(new InetSocketAddress("127.0.0.1", server.port()));
            send(socket, server, "{\"amount\":5}");
            assertThat(socket.getInputStream().readNBytes(1000)).hasSize(1000);
            socket.setSoLinger(true, 0);
        }
        HttpResponse<byte[]> retry = awaitEnd(server);
        assertThat(retry.statusCode()).isEqualTo(201);
        assertThat(replayed(retry)).isTrue();
        assertThat(text(retry)).isEqualTo(large);
        assertThat(runs).hasValue(1);
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    @DisplayName("an async handler whose HTTP/1.1 client leaves is not over while it works, nor run again")
    void anAsyncHandlerWhoseClientLeavesIsNotOverWhileItWorks(boolean oversize) throws Exception {
        byte[] part = new byte[64 << 10];
        CountDownLatch started = new CountDownLatch(1);
        CountDownLatch left = new CountDownLatch(1);
        CountDownLatch written = new CountDownLatch(1);
        CountDownLatch mayEnd = new CountDownLatch(1);
        ServletServer server = serve(
                (request, response) -> {
                    AsyncContext async = request.startAsync();
                    async.setTimeout(0);
                    executor.execute(() -> {
                        try {
                            if (oversize) {
                                response.getOutputStream().write(part);
                            }
                            started.countDown();
                            awaitLatch(left);
                            for (int i = 0; oversize && i < 200; i++) {
                                response.getOutputStream().write(part);
                            }
                            written.countDown();
                            awaitLatch(mayEnd);
                            response.getOutputStream().print("paid");
                            async.complete();
                        } catch (IOException | RuntimeException theContainerHasEndedTheResponse) {
                            written.countDown();
                        }
                    });
                },
                filter -> filter.maxResponseBody(10_000));
        try (Socket socket = new Socket("127.0.0.1", server.port())) {
            send(socket, server, "{\"amount\":5}");
            awaitLatch(started);
            socket.setSoLinger(true, 0);
        }
        left.countDown();
        awaitLatch(written);
        assertThat(refusal(call(server))).isIn("in-progress", "outcome-unknown");
        mayEnd.countDown();
        HttpResponse<byte[]> end = awaitEnd(server);
        if (oversize) {
            assertThat(refusal(end)).isIn("result-unavailable", "outcome-unknown");
        } else {
            assertThat(replayed(end)).isTrue();
            assertThat(text(end)).isEqualTo("paid");
        }
        assertThat(runs).hasValue(1);
    }

    /** Over HTTP/2 Tomcat and Jetty see at once that a client has left, and end the response of a handler that still runs. */
    @Test
    @DisplayName("T12, T13: an async handler whose HTTP/2 client leaves is not run again while it works")
    void anAsyncHandlerWhoseHttp2ClientLeavesIsNotRunAgain() throws Exception {
        AtomicReference<Thread> dispatching = new AtomicReference<>();
        CountDownLatch ended = new CountDownLatch(1);
        CountDownLatch mayEnd = new CountDownLatch(1);
        CountDownLatch worked = new CountDownLatch(1);
        Handler handler = (request, response) -> {
            if (request.getMethod().equals("GET")) {
                return;
            }
            if (runs.get() > 1) {
                respond(response, 200, "paid twice");
                return;
            }
            AsyncContext async = request.startAsync();
            async.setTimeout(0);
            async.addListener(new AsyncEnds() {
                @Override
                public void onComplete(AsyncEvent event) {
                    ended.countDown();
                }
            });
            executor.execute(() -> {
                awaitLatch(mayEnd);
                try {
                    respond(response, 201, "paid");
                    async.complete();
                } catch (IOException | RuntimeException theContainerHasEndedTheResponse) {
                    assertThat(ended.getCount()).isZero();
                } finally {
                    worked.countDown();
                }
            });
        };
        ServletServer server = serveBehind(
                (request, response, chain) -> {
                    chain.doFilter(request, response);
                    if (((HttpServletRequest) request).getMethod().equals("POST")) {
                        dispatching.compareAndSet(null, Thread.currentThread());
                    }
                },
                handler);
        HttpClient http2 =
                HttpClient.newBuilder().version(HttpClient.Version.HTTP_2).build();
        HttpRequest upgrade = HttpRequest.newBuilder(server.uri("/")).build();
        assertThat(http2.send(upgrade, HttpResponse.BodyHandlers.discarding()).version())
                .isEqualTo(HttpClient.Version.HTTP_2);
        runs.set(0);
        CompletableFuture<?> leaving = http2.sendAsync(
                request("POST", server.uri("/payments"), id, "{\"amount\":5}"), HttpResponse.BodyHandlers.discarding());
        // A client that leaves before the dispatch is over is not noticed by every container.
        await().until(() -> dispatching.get() != null && !isInContainer(dispatching.get()));
        leaving.cancel(true);
        if (container != Container.UNDERTOW) {
            awaitLatch(ended);
        }
        assertThat(refusal(call(server))).isIn("in-progress", "outcome-unknown");
        mayEnd.countDown();
        awaitLatch(worked);
        HttpResponse<byte[]> end = awaitEnd(server);
        if (container != Container.UNDERTOW) {
            assertThat(refusal(end)).isEqualTo("outcome-unknown");
        } else {
            assertThat(replayed(end)).isTrue();
            assertThat(text(end)).isEqualTo("paid");
        }
        assertThat(runs).hasValue(1);
    }

    private static boolean isInContainer(Thread thread) {
        String container =
                "(org\\.apache\\.(catalina|coyote)|org\\.eclipse\\.jetty\\.(server|ee\\d+|http2)|io\\.undertow)\\..*";
        return Stream.of(thread.getStackTrace())
                .anyMatch(frame -> frame.getClassName().matches(container));
    }
}
