package io.idempotence.examples.payments;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.examples.payments.network.FaultPlan;
import io.idempotence.server.storage.IdempotenceStorage;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class PaymentsDemoTest {
    private final ByteArrayOutputStream out = new ByteArrayOutputStream();
    private final StringWriter err = new StringWriter();

    @Test
    void pairPaysEveryOrderOnceInMemory() {
        assertThat(run("--storage", "memory", "--calls", "40", "--seed", "1")).isZero();
        assertThat(output()).contains("one storage in memory").endsWith("\ndouble payments: 0, lost payments: 0\n");
    }

    @Test
    void pairPaysEveryOrderOnceOnItsOwnRedis() {
        assertThat(run("--calls", "40", "--seed", "2")).isZero();
        assertThat(output()).contains("an embedded Redis").endsWith("\ndouble payments: 0, lost payments: 0\n");
    }

    @Test
    void plainRetryReallyPaysTwice() throws InterruptedException {
        try (DemoStorage storage = DemoStorage.memory()) {
            Result plain =
                    PaymentRun.run(Mode.PLAIN_RETRY, 40, FaultPlan.ofSeed(1), storage, "plain-test", Progress.none());
            assertThat(plain.doublePayments()).isGreaterThanOrEqualTo(5);
            assertThat(plain.paymentsMade()).isEqualTo(40 + plain.doublePayments() - plain.lostPayments());
            assertThat(plain.httpAttempts()).isGreaterThan(40);
            assertThat(plain.isFlawless()).isFalse();
        }
    }

    @Test
    void pairThatDoesNotRememberIsFoundOut() throws InterruptedException {
        // Each provider has a memory of its own, so a retry at the other instance pays again.
        try (DemoStorage apart = new DemoStorage("two memories", IdempotenceStorage::inMemory, () -> {})) {
            Result pair = PaymentRun.run(Mode.PAIR, 40, FaultPlan.ofSeed(1), apart, "apart", Progress.none());
            assertThat(pair.doublePayments()).isPositive();
            assertThat(pair.isFlawless()).isFalse();
        }
    }

    @Test
    void withoutFaultsOnlyASlowMachineCausesRetries() throws InterruptedException {
        try (DemoStorage storage = DemoStorage.memory()) {
            for (Mode mode : Mode.values()) {
                PaymentRun.run(mode, 100, FaultPlan.noFaults(), storage, "warm-up", Progress.none());
                Result result = PaymentRun.run(mode, 10, FaultPlan.noFaults(), storage, "test", Progress.none());
                assertThat(result.lostPayments()).isZero();
                assertThat(result.doublePayments()).isLessThanOrEqualTo(result.httpAttempts() - 10);
                assertThat(result.isFlawless() || mode == Mode.PLAIN_RETRY && result.httpAttempts() > 10)
                        .isTrue();
            }
        }
    }

    @Test
    void anotherRedisThatNobodyRespondsAtIsAnError() throws IOException {
        int port;
        try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
            port = taken.getLocalPort();
        }
        assertThat(run("--redis", "127.0.0.1:" + port)).isEqualTo(2);
        assertThat(err.toString()).startsWith("--redis 127.0.0.1:" + port + ": ");
        assertThat(output()).isEmpty();
    }

    @ParameterizedTest
    @CsvSource({
        "'--redis localhost',           '--redis localhost: '",
        "'--redis localhost:',          '--redis localhost:: '",
        "'--redis localhost:99999',     '--redis localhost:99999: '",
        "'--calls 0',                   '--calls must be 1 to 100000, got 0'",
        "'--calls 100001',              '--calls must be 1 to 100000, got 100001'",
        "'--calls many',                'Invalid value for option ''--calls'''",
        "'--seed x',                    'Invalid value for option ''--seed'''",
        "'--storage disk',              '--storage must be redis or memory, got ''disk'''",
        "'--storage memory --redis a:1','--redis and --storage memory exclude each other'",
        "'--nonsense',                  'Unknown option: ''--nonsense'''"
    })
    void wrongOptionsAreNamed(String options, String message) {
        assertThat(run(options.split(" "))).isEqualTo(2);
        assertThat(err.toString()).startsWith(message).contains("Usage: payments");
        assertThat(output()).isEmpty();
    }

    private int run(String... args) {
        return PaymentsDemo.run(new PrintStream(out, true, StandardCharsets.UTF_8), new PrintWriter(err, true), args);
    }

    private String output() {
        return out.toString(StandardCharsets.UTF_8).replace(System.lineSeparator(), "\n");
    }
}
