package io.idempotence.examples.job;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.examples.job.HoldingNetwork.Where;
import io.idempotence.examples.payments.DemoStorage;
import io.idempotence.examples.payments.api.Payment;
import io.idempotence.examples.payments.api.PaymentOrder;
import io.idempotence.examples.payments.provider.Ledger;
import io.idempotence.examples.payments.provider.PaymentProvider;
import io.idempotence.server.Idempotence;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The job as a process, killed and started again, against the provider on a real Redis. */
@Timeout(120)
class PaymentJobTest {
    @TempDir
    private Path directory;

    private Path book;
    private DemoStorage redis;
    private Idempotence idempotence;
    private final Ledger ledger = new Ledger();
    private PaymentProvider provider;

    @BeforeEach
    void start() throws IOException {
        redis = DemoStorage.embeddedRedis();
        idempotence = Idempotence.over(redis.connect());
        provider = PaymentProvider.startProtected("provider", ledger, idempotence);
        book = directory.resolve("book");
        try (OrderBook orders = OrderBook.open(book)) {
            for (int order = 1; order <= 3; order++) {
                orders.add(new PaymentOrder(order, 100L * order));
            }
        }
    }

    @AfterEach
    void stop() throws IOException {
        provider.close();
        idempotence.close();
        redis.close();
    }

    @ParameterizedTest
    @EnumSource
    @Tag("all")
    void killedAndStartedAgainItPaysEveryOrderOnce(Where where) throws Exception {
        try (HoldingNetwork network = new HoldingNetwork(2, where, provider.port())) {
            Process killed = startJob(network.url());
            try {
                CompletableFuture.anyOf(network.holds(), killed.onExit()).join();
                assertThat(network.holds())
                        .as("the job is in the middle of order 2")
                        .isDone();
            } finally {
                killed.destroyForcibly().waitFor();
            }
            assertThat(paidOrders()).containsExactlyElementsOf(where == Where.RESPONSE ? List.of(1, 2) : List.of(1));
            assertThat(lines("paid")).containsExactly("paid 1 1");
            assertThat(lines("sends 2")).hasSize(1);

            network.letPass();
            assertThat(startJob(network.url()).waitFor()).isZero();

            assertThat(paidOrders()).containsExactly(1, 2, 3);
            assertThat(lines("paid")).containsExactly("paid 1 1", "paid 2 2", "paid 3 3");
            assertThat(network.ids(2)).hasSize(1);
            assertThat(lines("sends 2").get(0))
                    .endsWith(" " + network.ids(2).iterator().next().replace("\"", ""));
        }
    }

    @Test
    void anIdThatTheProviderMayHaveForgottenIsNotAskedWith() throws IOException {
        Files.writeString(
                book, "due 1 100\nsends 1 " + Instant.now().minus(Duration.ofHours(25)) + " some-id\ndue 2 200\n");
        try (OrderBook orders = OrderBook.open(book)) {
            PaymentJob job = new PaymentJob(orders, PaymentJob.payments("http://127.0.0.1:" + provider.port()));
            assertThat(job.run()).isEqualTo(1);
        }
        assertThat(paidOrders()).containsExactly(2);
    }

    @Test
    void aLineCutShortByACrashIsDropped() throws IOException {
        Files.writeString(book, "due 1 100\nsends 1 2026-11-21T08:0");
        try (OrderBook orders = OrderBook.open(book)) {
            assertThat(orders.due()).containsExactly(new DueOrder(new PaymentOrder(1, 100), null));
            orders.add(new PaymentOrder(2, 200));
        }
        assertThat(Files.readAllLines(book)).containsExactly("due 1 100", "due 2 200");
    }

    private Process startJob(String url) throws IOException {
        return new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-XX:TieredStopAtLevel=1",
                        "-cp",
                        System.getProperty("java.class.path"),
                        PaymentJob.class.getName(),
                        book.toString(),
                        url)
                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
    }

    private List<Integer> paidOrders() {
        return ledger.payments().stream().map(Payment::order).toList();
    }

    private List<String> lines(String prefix) throws IOException {
        return Files.readAllLines(book).stream()
                .filter(line -> line.startsWith(prefix))
                .toList();
    }
}
