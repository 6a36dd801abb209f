package io.idempotence.examples.payments;

import java.time.Duration;
import java.util.Locale;
import java.util.function.Function;

/** The results of a demo as plain text. */
final class Report {
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
        row(table, "never settled", plain, pair, Result::unsettled);
        row(table, "p50 of a call", plain, pair, result -> millis(result.p50()));
        row(table, "p99 of a call", plain, pair, result -> millis(result.p99()));
        return table.toString();
    }

    /** What the table shows, in words: a line for each mode. */
    static String explanation(Result plain, Result pair) {
        return String.format("The plain retry %s%s.%n%s%n", tooMany(plain), leftOpen(plain), ofThePair(pair));
    }

    private static String tooMany(Result plain) {
        return switch (plain.doublePayments()) {
            case 0 -> "made no payment twice";
            case 1 -> "made 1 payment too many";
            default -> "made " + plain.doublePayments() + " payments too many";
        };
    }

    private static String leftOpen(Result plain) {
        return switch (plain.unknownOutcomes()) {
            case 0 -> "";
            case 1 -> ", and 1 call ended without knowing whether it had paid";
            default -> ", and " + plain.unknownOutcomes() + " calls ended without knowing whether they had paid";
        };
    }

    private static String ofThePair(Result pair) {
        if (!pair.isFlawless()) {
            return "THE PAIR FAILED: see the lines below.";
        }
        String asked = switch (pair.unknownOutcomes()) {
            case 0 -> "";
            case 1 -> " 1 call of unknown outcome was settled by asking again under its ID.";
            default ->
                " " + pair.unknownOutcomes()
                        + " calls of unknown outcome were settled by asking again under their IDs.";
        };
        return "The pair paid every order once, and every consumer was told." + asked;
    }

    /** The line that scripts read. */
    static String lastLine(Result pair) {
        return "double payments: " + pair.doublePayments() + ", lost payments: " + pair.lostPayments();
    }

    private static void row(
            StringBuilder table, String name, Result plain, Result pair, Function<Result, Object> value) {
        table.append(String.format(Locale.ROOT, "%-18s%14s%14s%n", name, value.apply(plain), value.apply(pair)));
    }

    private static String millis(Duration duration) {
        return duration.toMillis() + " ms";
    }
}
