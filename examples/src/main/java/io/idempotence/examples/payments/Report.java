package io.idempotence.examples.payments;

import java.time.Duration;
import java.util.Locale;
import java.util.function.Function;

/** Says in plain text what came out. */
final class Report {
    private static final String ROW = "%-18s%14s%14s%n";

    private Report() {}

    /** A table, two modes side by side, each line ended. */
    static String table(Result plain, Result pair) {
        StringBuilder table = new StringBuilder();
        row(table, "", plain, pair, result -> result.mode().label());
        row(table, "calls", plain, pair, Result::calls);
        row(table, "HTTP attempts", plain, pair, Result::httpAttempts);
        row(table, "payments made", plain, pair, Result::paymentsMade);
        row(table, "double payments", plain, pair, Result::doublePayments);
        row(table, "lost payments", plain, pair, Result::lostPayments);
        row(table, "unknown outcomes", plain, pair, Result::unknownOutcomes);
        row(table, "p50", plain, pair, result -> millis(result.p50()));
        row(table, "p99", plain, pair, result -> millis(result.p99()));
        return table.toString();
    }

    /** What the table shows, in words. */
    static String explanation(Result plain, Result pair) {
        String onceOnly = pair.isFlawless()
                ? "The pair paid every order once, and every consumer was told."
                : "THE PAIR FAILED: see the lines below.";
        String asked = pair.unknownOutcomes() == 0
                ? ""
                : " Its " + calls(pair.unknownOutcomes()) + " without an answer asked again later, under the same ID.";
        return String.format(
                "The same network spoiled both. The plain retry paid %d times too often, and cannot find out about its %s of"
                        + " unknown outcome.%n%s%s%n",
                plain.doublePayments(), calls(plain.unknownOutcomes()), onceOnly, asked);
    }

    /** The line that scripts read. */
    static String lastLine(Result pair) {
        return "double payments: " + pair.doublePayments() + ", lost payments: " + pair.lostPayments();
    }

    private static String calls(int number) {
        return number == 1 ? "1 call" : number + " calls";
    }

    private static void row(
            StringBuilder table, String name, Result plain, Result pair, Function<Result, Object> value) {
        table.append(String.format(Locale.ROOT, ROW, name, value.apply(plain), value.apply(pair)));
    }

    private static String millis(Duration duration) {
        return duration.toMillis() + " ms";
    }
}
