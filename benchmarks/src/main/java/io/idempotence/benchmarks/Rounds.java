package io.idempotence.benchmarks;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.ToDoubleFunction;
import org.HdrHistogram.Histogram;

/**
 * Samples of variants that ran in turn. A round runs every variant once; each begins with another one. What disturbs the machine
 * for longer than a round disturbs all variants, so a ratio within a round says more than two figures of different runs.
 */
final class Rounds {
    private final List<Map<String, Sample>> rounds;

    private Rounds(List<Map<String, Sample>> rounds) {
        this.rounds = rounds;
    }

    /** Runs all variants {@code warmUps + count} times and keeps the last {@code count} rounds. */
    static Rounds run(List<Variant> variants, int warmUps, int count, Duration each, Countdown countdown)
            throws Exception {
        List<Map<String, Sample>> kept = new ArrayList<>();
        for (int round = 0; round < warmUps + count; round++) {
            Map<String, Sample> samples = new HashMap<>();
            for (int i = 0; i < variants.size(); i++) {
                Variant variant = variants.get((i + round) % variants.size());
                samples.put(variant.name(), variant.load().run(each));
            }
            if (round >= warmUps) {
                kept.add(samples);
            }
            countdown.done(
                    variants.size(),
                    round < warmUps ? "warm-up" : "round %d of %d".formatted(round + 1 - warmUps, count));
        }
        return new Rounds(kept);
    }

    /** The median over the rounds of one variant's figure. */
    double median(String variant, ToDoubleFunction<Sample> figure) {
        return medianOfRounds(round -> figure.applyAsDouble(round.of(variant)));
    }

    /** A percentile of one variant's latencies in all rounds together, in microseconds: one round has too few for the rare ones. */
    double percentile(String variant, double percentile) {
        Histogram all = new Histogram(3);
        rounds.forEach(samples -> all.add(new Round(samples).of(variant).latencies()));
        return all.getValueAtPercentile(percentile) / 1e3;
    }

    Set<String> names() {
        return new TreeSet<>(rounds.get(0).keySet());
    }

    /** The share of one variant's operations that was refused in all rounds together. */
    double refused(String variant) {
        long refused = rounds.stream()
                .mapToLong(samples -> new Round(samples).of(variant).refused())
                .sum();
        long served = rounds.stream()
                .mapToLong(samples -> new Round(samples).of(variant).latencies().getTotalCount())
                .sum();
        return refused == 0 ? 0 : (double) refused / (refused + served);
    }

    /** The median over the rounds of a figure made of several variants. */
    double medianOfRounds(ToDoubleFunction<Round> figure) {
        return quantile(figure, 0.5);
    }

    /** One variant's figure divided by another's. */
    static ToDoubleFunction<Round> ratio(String variant, String base, ToDoubleFunction<Sample> figure) {
        return round -> figure.applyAsDouble(round.of(variant)) / figure.applyAsDouble(round.of(base));
    }

    /** The lowest and the highest of the figure over the rounds, as {@code 0.91 to 0.97}. */
    String range(ToDoubleFunction<Round> figure) {
        return Table.number(quantile(figure, 0)) + " to " + Table.number(quantile(figure, 1));
    }

    private double quantile(ToDoubleFunction<Round> figure, double quantile) {
        double[] sorted = rounds.stream()
                .mapToDouble(samples -> figure.applyAsDouble(new Round(samples)))
                .sorted()
                .toArray();
        return at(sorted, quantile);
    }

    private static double at(double[] sorted, double quantile) {
        double place = quantile * (sorted.length - 1);
        int below = (int) place;
        int above = Math.min(below + 1, sorted.length - 1);
        return sorted[below] + (place - below) * (sorted[above] - sorted[below]);
    }

    static double median(double... values) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        return at(sorted, 0.5);
    }

    /** One round. */
    record Round(Map<String, Sample> samples) {
        Sample of(String variant) {
            return Objects.requireNonNull(samples.get(variant), variant);
        }
    }
}
