package io.idempotence.benchmarks;

import java.io.IOException;
import java.util.function.ToDoubleFunction;

/** The targets, and whether they were met. */
final class Targets {
    private final Table table = new Table("<target", "median", "rounds", "<");

    void atLeast(String what, double target, Rounds rounds, ToDoubleFunction<Rounds.Round> figure) {
        double median = rounds.medianOfRounds(figure);
        add(what + ": at least " + Table.number(target), median, rounds.range(figure), median >= target);
    }

    void atMost(String what, double target, Rounds rounds, ToDoubleFunction<Rounds.Round> figure) {
        double median = rounds.medianOfRounds(figure);
        add(what + ": at most " + Table.number(target), median, rounds.range(figure), median <= target);
    }

    void add(String what, double measured, String range, boolean met) {
        table.row(what, measured, range, met ? "met" : "missed");
    }

    void publish(String name, ResultsOption results) throws IOException {
        results.publish(name, table);
    }
}
