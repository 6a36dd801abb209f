package io.idempotence.examples.payments;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.examples.payments.api.Payment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;

class ReportTest {
    private static final Payment FIRST = new Payment(1, 1, 101, "provider-1");
    private static final Payment AGAIN = new Payment(2, 1, 101, "provider-2");
    private static final Payment SECOND = new Payment(3, 2, 102, "provider-1");

    private final Result plain = result(Mode.PLAIN_RETRY, List.of(FIRST, AGAIN), List.of(AGAIN), 1, 1);
    private final Result pair = result(Mode.PAIR, List.of(FIRST, SECOND), List.of(FIRST, SECOND), 1, 0);

    @Test
    void countsFromTheLedger() {
        assertThat(plain.paymentsMade()).isEqualTo(2);
        assertThat(plain.doublePayments()).isEqualTo(1);
        assertThat(plain.lostPayments()).isEqualTo(1);
        assertThat(plain.isFlawless()).isFalse();
        assertThat(pair.isFlawless()).isTrue();
    }

    @Test
    void responseThatIsNotInTheLedgerIsWrong() {
        Result result = result(Mode.PAIR, List.of(FIRST, SECOND), List.of(FIRST, AGAIN), 0, 0);
        assertThat(result.wrongResponses()).isEqualTo(1);
        assertThat(result.isFlawless()).isFalse();
    }

    @Test
    void callThatWasNeverSettledIsNotFlawless() {
        assertThat(result(Mode.PAIR, List.of(FIRST, SECOND), List.of(FIRST), 1, 1)
                        .isFlawless())
                .isFalse();
    }

    @Test
    void tableIsSideBySide() {
        assertThat(Report.table(plain, pair).lines())
                .containsExactly(
                        "                     plain retry      the pair",
                        "calls                          2             2",
                        "HTTP attempts                  3             3",
                        "payments made                  2             2",
                        "double payments                1             0",
                        "lost payments                  1             0",
                        "unknown outcomes               1             1",
                        "never settled                  1             0",
                        "p50 of a call              12 ms         12 ms",
                        "p99 of a call            1234 ms       1234 ms");
    }

    @Test
    void lastLineIsThePairs() {
        assertThat(Report.lastLine(pair)).isEqualTo("double payments: 0, lost payments: 0");
        assertThat(Report.lastLine(plain)).isEqualTo("double payments: 1, lost payments: 1");
    }

    @Test
    void explanationDoesNotPraiseAFailure() {
        assertThat(Report.explanation(plain, pair)).contains("paid every order once");
        assertThat(Report.explanation(plain, plain)).contains("THE PAIR FAILED");
    }

    @Test
    void explanationCountsInWords() {
        assertThat(explained(0, 0, 0)).isEqualTo("""
                        The plain retry made no payment twice.
                        The pair paid every order once, and every consumer was told.
                        """);
        assertThat(explained(1, 1, 1)).isEqualTo("""
                        The plain retry made 1 payment too many, and 1 call ended without knowing whether it had paid.
                        The pair paid every order once, and every consumer was told. 1 call of unknown outcome was settled by asking again under its ID.
                        """);
        assertThat(explained(32, 3, 2)).isEqualTo("""
                        The plain retry made 32 payments too many, and 3 calls ended without knowing whether they had paid.
                        The pair paid every order once, and every consumer was told. 2 calls of unknown outcome were settled by asking again under their IDs.
                        """);
    }

    private static String explained(int doubles, int unknownOfPlain, int unknownOfPair) {
        List<Payment> ledger = new ArrayList<>(List.of(FIRST, SECOND));
        ledger.addAll(Collections.nCopies(doubles, AGAIN));
        return Report.explanation(
                        result(Mode.PLAIN_RETRY, ledger, List.of(), unknownOfPlain, unknownOfPlain),
                        result(Mode.PAIR, List.of(FIRST, SECOND), List.of(FIRST, SECOND), unknownOfPair, 0))
                .replace(System.lineSeparator(), "\n");
    }

    private static Result result(Mode mode, List<Payment> ledger, List<Payment> responses, int unknown, int unsettled) {
        return Result.of(
                mode, 2, 3, ledger, responses, unknown, unsettled, Duration.ofMillis(12), Duration.ofMillis(1234));
    }
}
