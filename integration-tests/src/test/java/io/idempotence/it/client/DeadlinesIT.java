package io.idempotence.it.client;

import static io.idempotence.it.wire.Latches.awaitLatch;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import feign.BaseBuilder;
import feign.Request;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.OutcomeUnknown;
import io.idempotence.it.wire.Drip;
import io.idempotence.it.wire.FullBacklog;
import io.idempotence.it.wire.RawServer;
import io.idempotence.it.wire.SideBySide;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * The deadline of a call, and the interruption of its thread, end an exchange in each of its stages: with a peer that stalls, and
 * with one that sends a byte now and then, so that no read ever times out.
 */
class DeadlinesIT {
    private static final Duration DEADLINE = Duration.ofMillis(600);
    private static final long MOST_MILLIS = 500;

    /** A call must not end before its deadline, but for the grain of clocks. */
    private static final long LEAST_MILLIS = -50;

    private static final String LARGE = "x".repeat(16 << 20);

    /** Where an exchange stands still. */
    enum Stage {
        CONNECT,
        TLS(socket -> Drip.write(socket, "\u0016\u0003\u0003\u0040\u0000" + "x".repeat(100_000))),
        TLS_STALL(socket -> {}),
        REQUEST_BODY(socket -> {}),
        STATUS_LINE(socket -> drip(socket, "HTTP/1.1 200 ")),
        STATUS_LINE_STALL(socket -> write(socket, "HTTP/1.1 2")),
        HEADERS(socket -> drip(socket, "HTTP/1.1 200 OK\r\nX-Drip: ")),
        HEADERS_STALL(socket -> write(socket, "HTTP/1.1 200 OK\r\nX-Stall: ")),
        BODY(socket -> drip(socket, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")),
        BODY_STALL(socket -> write(socket, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nhalf")),
        ERROR_BODY(socket -> drip(socket, "HTTP/1.1 422 No\r\nContent-Length: 1000000\r\n\r\n")),
        ERROR_BODY_STALL(socket -> write(socket, "HTTP/1.1 422 No\r\nContent-Length: 1000000\r\n\r\nhalf"));

        private final Peer peer;

        Stage() {
            this(socket -> {});
        }

        Stage(Peer peer) {
            this.peer = peer;
        }

        boolean isTls() {
            return name().startsWith("TLS");
        }

        boolean readsRequest() {
            return !isTls() && this != REQUEST_BODY;
        }

        String body() {
            return this == REQUEST_BODY ? LARGE : "x";
        }

        /** Stalled or dripping, it is the same stage. */
        static Stream<Stage> columns() {
            return Stream.of(values()).filter(stage -> !stage.name().endsWith("_STALL"));
        }

        String title() {
            return this == TLS ? "TLS" : name().toLowerCase(Locale.ROOT).replace('_', ' ');
        }
    }

    private interface Peer {
        void treat(Socket socket) throws IOException;
    }

    private static void write(Socket socket, String bytes) throws IOException {
        socket.getOutputStream().write(bytes.getBytes(StandardCharsets.ISO_8859_1));
    }

    private static void drip(Socket socket, String before) throws IOException {
        write(socket, before);
        Drip.write(socket, "x".repeat(1_000_000));
    }

    private record Cell(FeignHttpClient client, Stage stage) {
        static Stream<Cell> all() {
            return Stream.of(FeignHttpClient.values())
                    .flatMap(client -> Stream.of(Stage.values()).map(stage -> new Cell(client, stage)));
        }

        /** Nobody waits for a call that returns a future. HttpURLConnection has nothing to close until it is connected. */
        boolean endsByInterruption() {
            return !client.isAsync() && !(client == FeignHttpClient.DEFAULT && stage == Stage.CONNECT);
        }

        /** The JDK does not close a TLS connection to which another thread writes. */
        String title() {
            String end = endsByInterruption() ? "both" : "deadline";
            return client == FeignHttpClient.DEFAULT && stage == Stage.REQUEST_BODY ? end + ", but not over TLS" : end;
        }

        @Override
        public String toString() {
            return client + ", " + stage;
        }
    }

    @TestFactory
    Stream<DynamicTest> deadlineEndsTheCallInEveryStage() {
        return SideBySide.test(Cell.all(), DeadlinesIT::assertDeadlineEnds);
    }

    private static void assertDeadlineEnds(Cell cell) throws Exception {
        assertEndsInTime(() -> {
            try (StandingServer server = new StandingServer(cell.stage);
                    FeignHttpClient.Running running = cell.client.start()) {
                Orders orders = orders(running, server, DEADLINE);
                Ended ended = new Ended(() -> orders.create(cell.stage.body()));
                ended.awaitEnd();
                return ended.millisSince(ended.began) - DEADLINE.toMillis();
            }
        });
    }

    @TestFactory
    Stream<DynamicTest> interruptionEndsTheCallInEveryStage() {
        return SideBySide.test(Cell.all().filter(Cell::endsByInterruption), DeadlinesIT::assertInterruptionEnds);
    }

    private static void assertInterruptionEnds(Cell cell) throws Exception {
        assertEndsInTime(() -> {
            try (StandingServer server = new StandingServer(cell.stage);
                    FeignHttpClient.Running running = cell.client.start()) {
                Orders orders = orders(running, server, Duration.ofSeconds(60));
                Ended ended = new Ended(() -> orders.create(cell.stage.body()));
                server.awaitRequest();
                ended.awaitStandstill();
                long interrupted = System.nanoTime();
                ended.thread.interrupt();
                ended.awaitEnd();
                assertThat(ended.keptItsFlag).isTrue();
                return ended.millisSince(interrupted);
            }
        });
    }

    /** The cell of the table that has no "both", and a caller who waits. */
    @Test
    void interruptionOfTheDefaultClientIsNoticedOnlyWhenItsConnectTimeoutIsOver() throws Exception {
        Cell cell = new Cell(FeignHttpClient.DEFAULT, Stage.CONNECT);
        assertThat(cell.endsByInterruption()).isFalse();
        Duration deadline = Duration.ofSeconds(2); // long enough to interrupt before it
        assertEndsInTime(() -> {
            try (StandingServer server = new StandingServer(cell.stage);
                    FeignHttpClient.Running running = cell.client.start()) {
                Orders orders = orders(running, server, deadline);
                Ended ended = new Ended(() -> orders.create(cell.stage.body()));
                ended.awaitStandstill();
                ended.thread.interrupt();
                ended.awaitEnd();
                assertThat(ended.keptItsFlag).isTrue();
                return ended.millisSince(ended.began) - deadline.toMillis();
            }
        });
    }

    /** Two timeouts, one after the other, must not make two deadlines. */
    @ParameterizedTest
    @EnumSource
    void deadlineIsThatOfTheCallAndNotOfEachOfItsTimeouts(FeignHttpClient client) throws Exception {
        assertEndsInTime(() -> {
            CountDownLatch over = new CountDownLatch(1);
            try (RawServer server = RawServer.start((request, socket) -> {
                        try {
                            // Most of the deadline is used up when the headers come.
                            over.await(DEADLINE.toMillis() * 9 / 10, TimeUnit.MILLISECONDS);
                            write(socket, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
                            awaitLatch(over);
                        } catch (InterruptedException e) {
                            Thread.currentThread().interrupt();
                        }
                    });
                    FeignHttpClient.Running running = client.start()) {
                Orders orders = WireMockTestBase.target(installed(running, DEADLINE), server.url());
                Ended ended = new Ended(() -> orders.create("x"));
                ended.awaitEnd();
                over.countDown();
                return ended.millisSince(ended.began) - DEADLINE.toMillis();
            }
        });
    }

    /** The page says what the tests above show. */
    @Test
    void documentationListsWhatEndsACallInEachStage() throws IOException {
        Path page = Path.of("..", "docs", "deadlines.md");
        assertThat(Files.readAllLines(page)).containsSequence(table());
    }

    private static List<String> table() {
        List<String> table = new ArrayList<>();
        table.add("| client | " + Stage.columns().map(Stage::title).collect(Collectors.joining(" | ")) + " |");
        table.add("|---" + "|---".repeat((int) Stage.columns().count()) + "|");
        for (FeignHttpClient client : FeignHttpClient.values()) {
            table.add("| " + client.title() + " | "
                    + Stage.columns()
                            .map(stage -> new Cell(client, stage).title())
                            .collect(Collectors.joining(" | "))
                    + " |");
        }
        return table;
    }

    private interface Overtime {
        long millis() throws Exception;
    }

    /** A busy machine may be late, but not each time. It is never early. */
    private static void assertEndsInTime(Overtime overtime) throws Exception {
        List<Long> measured = new ArrayList<>();
        do {
            measured.add(overtime.millis());
        } while (measured.get(measured.size() - 1) >= MOST_MILLIS && measured.size() < 3);
        assertThat(measured)
                .as("ms after the deadline or the interrupt, in each try")
                .allMatch(millis -> millis >= LEAST_MILLIS)
                .anyMatch(millis -> millis < MOST_MILLIS);
    }

    private static Orders orders(FeignHttpClient.Running running, StandingServer server, Duration deadline) {
        return WireMockTestBase.target(installed(running, deadline), server.url());
    }

    private static BaseBuilder<?, ?> installed(FeignHttpClient.Running running, Duration deadline) {
        running.builder().options(new Request.Options(60, TimeUnit.SECONDS, 60, TimeUnit.SECONDS, true));
        return WireMockTestBase.install(
                running.builder(),
                IdempotenceClientConfig.builder()
                        .deadline(deadline)
                        .maxAttempts(1)
                        .build());
    }

    /** One call in a thread of its own, and how it ended. */
    private static final class Ended {
        private final CountDownLatch end = new CountDownLatch(1);
        private final long began = System.nanoTime();
        private volatile long at;
        private volatile Throwable thrown;
        private volatile boolean keptItsFlag;
        private final Thread thread;

        Ended(Runnable call) {
            thread = new Thread(
                    () -> {
                        try {
                            call.run();
                        } catch (Throwable e) {
                            thrown = e;
                        }
                        keptItsFlag = Thread.currentThread().isInterrupted();
                        at = System.nanoTime();
                        end.countDown();
                    },
                    "caller");
            thread.setDaemon(true);
            thread.start();
        }

        /** Nobody sees in which stage a client is, but it waits there: its thread is at one place for a while. */
        void awaitStandstill() {
            AtomicReference<List<StackTraceElement>> before = new AtomicReference<>(List.of());
            await().pollInterval(Duration.ofMillis(50)).until(() -> {
                List<StackTraceElement> now = List.of(thread.getStackTrace());
                return now.equals(before.getAndSet(now));
            });
            assertThat(end.getCount()).as("the call still runs").isEqualTo(1);
        }

        /** Unknown also where nothing left: HTTP clients report the timeout of a connection like that of a response. */
        void awaitEnd() throws InterruptedException {
            assertThat(end.await(10, TimeUnit.SECONDS)).as("the call ends").isTrue();
            assertThat(thrown).isInstanceOf(OutcomeUnknown.class);
        }

        long millisSince(long nanos) {
            return TimeUnit.NANOSECONDS.toMillis(at - nanos);
        }
    }

    /** A server that goes as far as one stage, and then no further until it is closed. */
    private static final class StandingServer implements AutoCloseable {
        private final Stage stage;
        private final FullBacklog backlog;
        private final ServerSocket listener;
        private final List<Socket> accepted = new ArrayList<>();
        private final ExecutorService threads = Executors.newCachedThreadPool();
        private final CountDownLatch reached = new CountDownLatch(1);

        StandingServer(Stage stage) throws IOException {
            this.stage = stage;
            if (stage == Stage.CONNECT) {
                backlog = new FullBacklog();
                listener = null;
                return;
            }
            backlog = null;
            listener = new ServerSocket();
            listener.setReceiveBufferSize(4096);
            listener.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 50);
            threads.execute(this::accept);
        }

        private void accept() {
            try {
                while (true) {
                    Socket socket = listener.accept();
                    synchronized (accepted) {
                        accepted.add(socket);
                    }
                    threads.execute(() -> serve(socket));
                }
            } catch (IOException e) {
                // closed
            }
        }

        private void serve(Socket socket) {
            try {
                InputStream in = socket.getInputStream();
                if (stage.readsRequest()) {
                    RawServer.read(in);
                }
                reached.countDown();
                stage.peer.treat(socket);
            } catch (IOException e) {
                // the client went away
            }
        }

        String url() {
            String url = backlog != null ? backlog.url() : "http://127.0.0.1:" + listener.getLocalPort();
            return stage.isTls() ? url.replace("http:", "https:") : url;
        }

        /** Nobody sees that a client waits for a connection. */
        void awaitRequest() throws InterruptedException {
            if (backlog == null) {
                awaitLatch(reached);
            }
        }

        @Override
        public void close() throws IOException {
            if (backlog != null) {
                backlog.close();
            } else {
                listener.close();
            }
            synchronized (accepted) {
                for (Socket socket : accepted) {
                    socket.close();
                }
            }
            threads.shutdownNow();
        }
    }
}
