package io.idempotence.it.client;

import static io.idempotence.it.wire.Latches.awaitLatch;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;
import static org.awaitility.Awaitility.await;

import feign.BaseBuilder;
import feign.FeignException;
import feign.Request;
import io.idempotence.client.IdempotenceClientConfig;
import io.idempotence.client.OutcomeUnknown;
import io.idempotence.it.wire.RawServer;
import io.idempotence.it.wire.SideBySide;
import io.idempotence.it.wire.TestTls;
import io.idempotence.it.wire.Yardstick;
import java.io.IOException;
import java.net.SocketException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Tag;
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
    private static final Duration MOST = Duration.ofMillis(500);
    private static final Duration EARLIEST = Duration.ofMillis(-50);

    private record Cell(FeignHttpClient client, ExchangeStage stage) {
        static Stream<Cell> all() {
            return Stream.of(FeignHttpClient.values())
                    .flatMap(client -> Stream.of(ExchangeStage.values()).map(stage -> new Cell(client, stage)));
        }

        /** The JDK does not close a TLS connection to which another thread writes, and here that is the caller's. */
        boolean endsAtTheDeadline() {
            return !(client == FeignHttpClient.DEFAULT && stage.isOfRequestBody() && stage.isTls());
        }

        /**
         * Nobody waits for a call that returns a future. HttpURLConnection has nothing to close until it is connected, and its body is not
         * closed while it is read, which Feign does itself if it is compressed.
         */
        boolean endsByInterruption() {
            return endsAtTheDeadline()
                    && !client.isAsync()
                    && !(client == FeignHttpClient.DEFAULT
                            && (stage == ExchangeStage.CONNECT || stage == ExchangeStage.COMPRESSED_BODY_STALL));
        }

        /** It looks once a second whether a connection takes too long, and it is not waited for until then. */
        boolean tellsThatItDidNotConnect() {
            return client != FeignHttpClient.ASYNC_HC5;
        }

        String title() {
            if (endsByInterruption()) {
                return "both";
            }
            return endsAtTheDeadline() ? "deadline" : "neither";
        }

        FeignHttpClient.Running start() {
            return client.start(stage.isTls() ? TestTls.context() : null);
        }

        @Override
        public String toString() {
            return client + ", " + stage;
        }
    }

    @TestFactory
    Stream<DynamicTest> deadlineEndsTheCallInEveryStage() {
        return SideBySide.test(
                Cell.all().filter(Cell::endsAtTheDeadline).filter(cell -> !cell.client.isAsync()),
                DeadlinesIT::assertDeadlineEnds);
    }

    @TestFactory
    @Tag("all")
    Stream<DynamicTest> deadlineEndsTheCallOfAnAsynchronousClientInEveryStage() {
        return SideBySide.test(
                Cell.all().filter(Cell::endsAtTheDeadline).filter(cell -> cell.client.isAsync()),
                DeadlinesIT::assertDeadlineEnds);
    }

    private static void assertDeadlineEnds(Cell cell) throws Exception {
        try (StalledServer server = new StalledServer(cell.stage);
                FeignHttpClient.Running running = cell.start()) {
            Orders orders = orders(running, server, DEADLINE);
            try (Yardstick yardstick = new Yardstick()) {
                Ended ended = new Ended(() -> orders.create(cell.stage.body()));
                ended.awaitEnd();
                ended.assertInTime(ended.since(ended.began).minus(DEADLINE), yardstick);
                ended.assertOutcome(cell, server);
            }
        }
    }

    @TestFactory
    Stream<DynamicTest> interruptionEndsTheCallInEveryStage() {
        return SideBySide.test(Cell.all().filter(Cell::endsByInterruption), DeadlinesIT::assertInterruptionEnds);
    }

    private static void assertInterruptionEnds(Cell cell) throws Exception {
        try (StalledServer server = new StalledServer(cell.stage);
                FeignHttpClient.Running running = cell.start()) {
            Orders orders = orders(running, server, Duration.ofSeconds(60));
            Ended ended = new Ended(() -> orders.create(cell.stage.body()));
            server.awaitRequest();
            ended.awaitStall();
            try (Yardstick yardstick = new Yardstick()) {
                long interrupted = System.nanoTime();
                ended.thread.interrupt();
                ended.awaitEnd();
                assertThat(ended.keptItsFlag).isTrue();
                ended.assertInTime(ended.since(interrupted), yardstick);
            }
            if (!cell.stage.isBeforeConnection()) {
                ended.assertOutcome(cell, server);
            }
        }
    }

    /** A cell of the table that has no "both", and a caller who waits. */
    @Test
    void interruptionOfTheDefaultClientIsNoticedOnlyWhenItsConnectTimeoutIsOver() throws Exception {
        Cell cell = new Cell(FeignHttpClient.DEFAULT, ExchangeStage.CONNECT);
        assertThat(cell.endsByInterruption()).isFalse();
        warmUp(cell);
        Duration deadline = Duration.ofSeconds(4); // long enough to interrupt before it
        try (StalledServer server = new StalledServer(cell.stage);
                FeignHttpClient.Running running = cell.start()) {
            Orders orders = orders(running, server, deadline);
            try (Yardstick yardstick = new Yardstick()) {
                Ended ended = new Ended(() -> orders.create(cell.stage.body()));
                ended.awaitConnecting();
                ended.thread.interrupt();
                ended.awaitEnd();
                assertThat(ended.keptItsFlag).isTrue();
                ended.assertInTime(ended.since(ended.began).minus(deadline), yardstick);
            }
        }
    }

    /** The other one. The watchdog closes the connection at the deadline, and that waits for the thread that writes. */
    @Test
    void requestBodyOverTlsOfTheDefaultClientEndsOnlyWithItsPeer() throws Exception {
        Cell cell = new Cell(FeignHttpClient.DEFAULT, ExchangeStage.REQUEST_BODY_OVER_TLS_STALL);
        assertThat(cell.endsAtTheDeadline()).isFalse();
        warmUp(cell);
        try (StalledServer server = new StalledServer(cell.stage);
                FeignHttpClient.Running running = cell.start()) {
            Orders orders = orders(running, server, Duration.ofSeconds(3)); // long enough to send before it
            Ended ended = new Ended(() -> orders.create(cell.stage.body()));
            server.awaitRequest();
            await().until(() -> Thread.getAllStackTraces().entrySet().stream()
                    .anyMatch(thread -> thread.getKey().getName().equals("idempotence-background")
                            && Stream.of(thread.getValue())
                                    .anyMatch(frame -> frame.getClassName().equals("sun.security.ssl.SSLSocketImpl")
                                            && frame.getMethodName().equals("close"))));
            assertThat(ended.end.getCount()).as("the call still runs").isEqualTo(1);
            server.close();
            ended.awaitEnd();
            ended.assertOutcome(cell, server);
        }
    }

    /** The first call loads classes, which may take longer than a short deadline. */
    private static void warmUp(Cell cell) throws Exception {
        try (StalledServer server = new StalledServer(cell.stage);
                FeignHttpClient.Running running = cell.start()) {
            Orders orders = orders(running, server, Duration.ofMinutes(1));
            Ended ended = new Ended(() -> orders.create(cell.stage.body()));
            server.awaitRequest();
            server.close();
            ended.awaitEnd();
        }
    }

    /** Two timeouts, one after the other, must not make two deadlines. */
    @ParameterizedTest
    @EnumSource
    void deadlineIsThatOfTheCallAndNotOfEachOfItsTimeouts(FeignHttpClient client) throws Exception {
        CountDownLatch over = new CountDownLatch(1);
        AtomicBoolean arrived = new AtomicBoolean();
        try (RawServer server = RawServer.start((request, socket) -> {
                    arrived.set(true);
                    try {
                        // Most of the deadline is used up when the headers come.
                        over.await(DEADLINE.toMillis() * 9 / 10, TimeUnit.MILLISECONDS);
                        ExchangeStage.write(socket, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
                        awaitLatch(over);
                    } catch (InterruptedException e) {
                        Thread.currentThread().interrupt();
                    }
                });
                FeignHttpClient.Running running = client.start()) {
            Orders orders = WireMockTestBase.target(installed(running, DEADLINE), server.url());
            try (Yardstick yardstick = new Yardstick()) {
                Ended ended = new Ended(() -> orders.create("x"));
                ended.awaitEnd();
                over.countDown();
                ended.assertInTime(ended.since(ended.began).minus(DEADLINE), yardstick);
                assumeThat(arrived)
                        .as("this process was not paused until the deadline was over")
                        .isTrue();
                assertThat(ended.thrown).isInstanceOf(OutcomeUnknown.class);
            }
        }
    }

    /** The page says what the tests above show. */
    @Test
    void documentationListsWhatEndsACallInEachStage() throws IOException {
        Path page = Path.of("..", "docs", "deadlines.md");
        assertThat(Files.readAllLines(page)).containsSequence(table());
    }

    private static List<String> table() {
        List<String> table = new ArrayList<>();
        table.add("| client | "
                + ExchangeStage.columns().map(ExchangeStage::title).collect(Collectors.joining(" | ")) + " |");
        table.add("|---" + "|---".repeat((int) ExchangeStage.columns().count()) + "|");
        for (FeignHttpClient client : FeignHttpClient.values()) {
            table.add("| " + client.title() + " | "
                    + ExchangeStage.columns()
                            .map(stage -> new Cell(client, stage).title())
                            .collect(Collectors.joining(" | "))
                    + " |");
        }
        return table;
    }

    private static Orders orders(FeignHttpClient.Running running, StalledServer server, Duration deadline) {
        return WireMockTestBase.target(installed(running, deadline), server.url());
    }

    private static BaseBuilder<?, ?> installed(FeignHttpClient.Running running, Duration deadline) {
        running.builder()
                .options(new Request.Options(
                        FeignHttpClient.CONNECT_TIMEOUT.toSeconds(), TimeUnit.SECONDS, 60, TimeUnit.SECONDS, true));
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
        void awaitStall() {
            AtomicReference<List<StackTraceElement>> before = new AtomicReference<>(List.of());
            await().pollInterval(Duration.ofMillis(50)).until(() -> {
                List<StackTraceElement> now = List.of(thread.getStackTrace());
                return now.equals(before.getAndSet(now));
            });
            assertThat(end.getCount()).as("the call still runs").isEqualTo(1);
        }

        /** An interrupt before that would keep it from connecting at all. */
        void awaitConnecting() {
            await().until(() -> Stream.of(thread.getStackTrace())
                    .anyMatch(frame -> frame.getClassName().equals("sun.nio.ch.NioSocketImpl")
                            && frame.getMethodName().equals("connect")));
        }

        void awaitEnd() throws InterruptedException {
            assertThat(end.await(60, TimeUnit.SECONDS)).as("the call ends").isTrue();
        }

        /** A slow machine may not come as far as its stage. Before there is a connection nothing is sent. */
        void assertOutcome(Cell cell, StalledServer server) {
            if (server.received) {
                assertThat(thrown).isInstanceOf(OutcomeUnknown.class);
            } else if (cell.stage.isBeforeConnection()
                    && cell.tellsThatItDidNotConnect()
                    && !isGivenUp(cell)
                    && !isClosedBeforeItsHandshake()) {
                assertThat(thrown).isInstanceOf(FeignException.class).isNotInstanceOf(OutcomeUnknown.class);
            }
        }

        /**
         * A call must not end before its deadline, but for the grain of clocks. Nor more than half a second after it, on a machine that
         * is not late itself.
         */
        void assertInTime(Duration overtime, Yardstick yardstick) {
            assertThat(overtime)
                    .as("the call ended with %s", thrown)
                    .isGreaterThan(EARLIEST)
                    .isLessThan(MOST.plus(yardstick.lateness()));
        }

        /** An asynchronous client that a late machine keeps from ending in time is not waited for. */
        private boolean isGivenUp(Cell cell) {
            return cell.client.isAsync() && since(began).compareTo(DEADLINE.plusMillis(250)) >= 0;
        }

        /** On a slow machine the deadline may come between two stages. HttpURLConnection then cannot tell that nothing was sent. */
        private boolean isClosedBeforeItsHandshake() {
            return Stream.iterate(thrown, Objects::nonNull, Throwable::getCause)
                    .anyMatch(cause -> cause instanceof SocketException
                            && cause.getMessage().equals("Socket is closed"));
        }

        Duration since(long nanos) {
            return Duration.ofNanos(at - nanos);
        }
    }
}
