package io.idempotence.benchmarks;

import java.io.PrintStream;
import java.util.List;
import java.util.Locale;

/** Prints Markdown tables, and what became of the targets. */
final class Report {
    private final PrintStream out;

    Report(PrintStream out) {
        this.out = out;
    }

    void line(String text, Object... args) {
        out.println(String.format(Locale.ROOT, text, args));
    }

    /** Begins a table; its first column is text, the others are numbers. */
    void table(String... columns) {
        out.println();
        row((Object[]) columns);
        out.println("|---|" + "---:|".repeat(columns.length - 1));
    }

    void row(Object... cells) {
        List<String> texts = List.of(cells).stream()
                .map(cell -> cell instanceof Double number ? number(number) : cell.toString())
                .toList();
        out.println("| " + String.join(" | ", texts) + " |");
    }

    void blank() {
        out.println();
    }

    void atLeast(String what, double target, double measured) {
        verdict(what, "at least", target, measured, measured >= target);
    }

    void atMost(String what, double target, double measured) {
        verdict(what, "at most", target, measured, measured <= target);
    }

    private void verdict(String what, String bound, double target, double measured, boolean met) {
        line("- %s: %s (%s, target %s %s)", met ? "met" : "missed", what, number(measured), bound, number(target));
    }

    private static String number(double value) {
        double size = Math.abs(value);
        return String.format(Locale.ROOT, size >= 100 ? "%,.0f" : size >= 10 ? "%.1f" : "%.2f", value);
    }
}
