package io.idempotence.it.client;

import static io.idempotence.it.wire.Latches.awaitLatch;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.idempotence.client.OutcomeUnknown;
import io.idempotence.client.okhttp.IdempotentOkHttp;
import io.idempotence.it.wire.Drip;
import io.idempotence.it.wire.FullBacklog;
import io.idempotence.it.wire.RawServer;
import io.idempotence.it.wire.TestTls;
import io.idempotence.it.wire.Yardstick;
import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Proxy;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import okhttp3.Call;
import okhttp3.EventListener;
import okhttp3.OkHttpClient;
import okhttp3.RequestBody;
import okio.Buffer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * The deadline of a call, and the interruption of its thread, end {@code execute()} with a peer that takes or sends a byte now and
 * then, so that no timeout of OkHttp ever applies.
 */
@Timeout(180)
class OkHttpDeadlinesIT extends OkHttpInterceptorTestBase {
    private static final Duration DEADLINE = Duration.ofMillis(600);
    private static final Duration MOST = Duration.ofMillis(500);
    private static final Duration LONG = Duration.ofSeconds(60);

    private enum Stage {
        CONNECT {
            @Override
            void treat(Socket socket) {
                throw new IllegalStateException("nothing connects");
            }
        },
        TLS {
            @Override
            void treat(Socket socket) throws IOException {
                Drip.write(socket, "\u0016\u0003\u0003@\u0000" + "x".repeat(100_000));
            }
        },
        REQUEST_BODY {
            @Override
            void treat(Socket socket) throws IOException {
                takeSlowly(socket);
            }
        },
        REQUEST_BODY_STALL {
            @Override
            void treat(Socket socket) {
                // Takes nothing.
            }
        },
        REQUEST_BODY_OVER_TLS {
            @Override
            void treat(Socket socket) throws IOException {
                takeSlowly(socket);
            }
        },
        REQUEST_BODY_OVER_TLS_STALL {
            @Override
            void treat(Socket socket) {
                // Takes nothing.
            }
        },
        STATUS_LINE {
            @Override
            void treat(Socket socket) throws IOException {
                drip(socket, "HTTP/1.1 200 ");
            }
        },
        HEADERS {
            @Override
            void treat(Socket socket) throws IOException {
                drip(socket, "HTTP/1.1 200 OK\r\nX-Drip: ");
            }
        };

        private static final CountDownLatch PAUSE = new CountDownLatch(1);

        abstract void treat(Socket socket) throws IOException;

        boolean isOfRequestBody() {
            return name().startsWith("REQUEST_BODY");
        }

        boolean isAfterHandshake() {
            return name().contains("OVER_TLS");
        }

        private static void takeSlowly(Socket socket) throws IOException {
            InputStream in = socket.getInputStream();
            try {
                while (in.read() >= 0 && !PAUSE.await(10, TimeUnit.MILLISECONDS)) {
                    // One byte now and then.
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }

        private static void drip(Socket socket, String before) throws IOException {
            socket.getOutputStream().write(before.getBytes(StandardCharsets.ISO_8859_1));
            Drip.write(socket, "x".repeat(1_000_000));
        }
    }

    /** A server that serves an exchange up to one stage, and from then on takes or sends a byte now and then. */
    private static final class SlowServer implements AutoCloseable {
        private final Stage stage;
        private final ServerSocket listener = new ServerSocket();
        private final FullBacklog backlog;
        private final CountDownLatch reached = new CountDownLatch(1);
        private final Set<Socket> open = ConcurrentHashMap.newKeySet();
        private final ExecutorService threads = Executors.newCachedThreadPool();

        SlowServer(Stage stage) throws IOException {
            this.stage = stage;
            this.backlog = stage == Stage.CONNECT ? new FullBacklog() : null;
            listener.setReceiveBufferSize(4096);
            listener.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 50);
            threads.execute(this::accept);
        }

        private void accept() {
            while (!listener.isClosed()) {
                try {
                    Socket socket = listener.accept();
                    open.add(socket);
                    threads.execute(() -> serve(socket));
                } catch (IOException e) {
                    // closed
                }
            }
        }

        private void serve(Socket accepted) {
            try {
                Socket socket = stage.isAfterHandshake() ? TestTls.accept(accepted) : accepted;
                // The JDK closes a TLS socket that is garbage.
                open.add(socket);
                int first = socket.getInputStream().read();
                if (first >= 0) {
                    reached.countDown();
                    stage.treat(socket);
                }
            } catch (IOException e) {
                // the client went away
            }
        }

        String url() {
            return switch (stage) {
                case CONNECT -> backlog.url();
                case TLS, REQUEST_BODY_OVER_TLS, REQUEST_BODY_OVER_TLS_STALL ->
                    "https://127.0.0.1:" + listener.getLocalPort();
                default -> "http://127.0.0.1:" + listener.getLocalPort();
            };
        }

        @Override
        public void close() throws IOException {
            if (backlog != null) {
                backlog.close();
            }
            listener.close();
            for (Socket socket : open) {
                socket.close();
            }
            threads.shutdownNow();
        }
    }

    /** Twice as much as the largest send buffer of Linux by default. The receive buffer of the server is small. */
    private static RequestBody body(Stage stage) {
        return RequestBody.create("x".repeat(stage.isOfRequestBody() ? 8 << 20 : 1), TEXT);
    }

    private OkHttpClient client(Duration deadline, EventListener listener) {
        OkHttpClient.Builder builder = new OkHttpClient.Builder()
                .connectTimeout(LONG)
                .readTimeout(LONG)
                .writeTimeout(LONG)
                .sslSocketFactory(TestTls.context().getSocketFactory(), TestTls.trustingAll())
                .hostnameVerifier((host, session) -> true)
                .eventListener(listener);
        return built(IdempotentOkHttp.install(
                builder, fast().deadline(deadline).maxAttempts(1).build(), "orders"));
    }

    /** A call in a thread of its own, so that one that does not end fails the test. */
    private final class Caller {
        private final CountDownLatch connecting = new CountDownLatch(1);
        private final CompletableFuture<Throwable> end = new CompletableFuture<>();
        private final long began = System.nanoTime();
        private final Call call;
        private final Thread thread;
        private volatile long endedAt;
        private volatile boolean keptItsFlag;

        Caller(SlowServer server, Duration deadline) {
            EventListener listener = new EventListener() {
                @Override
                public void connectStart(Call call, InetSocketAddress address, Proxy proxy) {
                    connecting.countDown();
                }
            };
            call = client(deadline, listener)
                    .newCall(to(server.url()).post(body(server.stage)).build());
            thread = new Thread(
                    () -> {
                        Throwable thrown = catchThrowable(call::execute);
                        endedAt = System.nanoTime();
                        keptItsFlag = Thread.currentThread().isInterrupted();
                        end.complete(thrown);
                    },
                    "caller");
            thread.setDaemon(true);
            thread.start();
        }

        Throwable end() throws Exception {
            return end.get(60, TimeUnit.SECONDS);
        }

        Duration timeSince(long nanos) {
            return Duration.ofNanos(endedAt - nanos);
        }
    }

    /** Not before its deadline, but for the grain of clocks; nor half a second after it, on a machine that is not late itself. */
    private static void assertEndsInTime(Duration overtime, Yardstick yardstick) {
        assertThat(overtime).isGreaterThan(Duration.ofMillis(-50)).isLessThan(MOST.plus(yardstick.lateness()));
    }

    /** Nothing was sent before there was a connection. A slow machine may not come as far as its stage. */
    private static void assertEnd(SlowServer server, Throwable thrown, Class<? extends IOException> reason) {
        if (server.stage == Stage.CONNECT || server.stage == Stage.TLS) {
            assertThat(thrown).isInstanceOf(reason).isNotInstanceOf(OutcomeUnknown.class);
        } else if (server.reached.getCount() == 0) {
            assertThat(thrown).isInstanceOf(OutcomeUnknown.class);
            assertThat(thrown.getCause()).isInstanceOf(reason);
        }
    }

    @ParameterizedTest
    @EnumSource
    void deadlineEndsACallWhosePeerIsSlowInAStage(Stage stage) throws Exception {
        try (SlowServer server = new SlowServer(stage);
                Yardstick yardstick = new Yardstick()) {
            Caller caller = new Caller(server, DEADLINE);
            assertEnd(server, caller.end(), SocketTimeoutException.class);
            assertEndsInTime(caller.timeSince(caller.began).minus(DEADLINE), yardstick);
        }
    }

    @ParameterizedTest
    @EnumSource
    void interruptionEndsACallWhosePeerIsSlowInAStage(Stage stage) throws Exception {
        try (SlowServer server = new SlowServer(stage)) {
            Caller caller = new Caller(server, LONG);
            awaitLatch(stage == Stage.CONNECT ? caller.connecting : server.reached);
            assertThat(caller.end).isNotDone();
            try (Yardstick yardstick = new Yardstick()) {
                long interrupted = System.nanoTime();
                caller.thread.interrupt();
                assertEnd(server, caller.end(), InterruptedIOException.class);
                assertThat(caller.keptItsFlag).isTrue();
                assertEndsInTime(caller.timeSince(interrupted), yardstick);
            }
        }
    }

    @Test
    void callThatIsCancelledWhileItConnectsWasNotSent() throws Exception {
        try (SlowServer server = new SlowServer(Stage.CONNECT)) {
            Caller caller = new Caller(server, LONG);
            awaitLatch(caller.connecting);
            caller.call.cancel();
            assertThat(caller.end()).isInstanceOf(IOException.class).isNotInstanceOf(OutcomeUnknown.class);
        }
    }

    /** As Cronet's: no network interceptor sees what it sends, but it has asked for the body. */
    @Test
    void callOverATransportOfAnotherKindMayHaveBeenSent() {
        OkHttpClient client = built(IdempotentOkHttp.install(
                        new OkHttpClient.Builder(), fast().maxAttempts(1).build(), "orders")
                .addInterceptor(chain -> {
                    chain.request().body().writeTo(new Buffer());
                    throw new IOException("Canceled");
                }));
        assertThat(catchThrowable(() -> client.newCall(to("http://127.0.0.1:1")
                                .post(body(Stage.CONNECT))
                                .build())
                        .execute()))
                .isInstanceOf(OutcomeUnknown.class);
    }

    /** The caller reads it, when its call has ended in time. */
    @Test
    void deadlineDoesNotEndTheBodyOfAResponseThatCameInTime() throws Exception {
        warmUp();
        Duration deadline = Duration.ofSeconds(3);
        String body = "x".repeat(350);
        try (RawServer server = RawServer.start((request, socket) -> {
            socket.getOutputStream()
                    .write("HTTP/1.1 200 OK\r\nContent-Length: 350\r\n\r\n".getBytes(StandardCharsets.ISO_8859_1));
            Drip.write(socket, body);
        })) {
            long began = System.nanoTime();
            assertThat(ok(client(deadline, EventListener.NONE), to(server.url())))
                    .isEqualTo(body);
            assertThat(Duration.ofNanos(System.nanoTime() - began)).isGreaterThan(deadline);
        }
    }

    @Test
    void documentationListsWhatEndsACall() throws IOException {
        assertThat(Files.readAllLines(Path.of("..", "docs", "deadlines.md")))
                .contains(
                        "| `IdempotentOkHttp` without Feign | both | both | both | both | both | both | caller's | caller's |");
    }
}
