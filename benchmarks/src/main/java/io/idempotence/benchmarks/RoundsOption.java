package io.idempotence.benchmarks;

import java.time.Duration;
import java.util.List;
import java.util.Locale;
import picocli.CommandLine.Option;

/** The options for how long a comparison takes. */
final class RoundsOption {
    @Option(names = "--rounds", defaultValue = "7", description = "rounds that count (${DEFAULT-VALUE})")
    private int rounds;

    @Option(names = "--warm-ups", defaultValue = "3", description = "rounds before them (${DEFAULT-VALUE})")
    private int warmUps;

    @Option(names = "--seconds", defaultValue = "1", description = "of each variant in a round (${DEFAULT-VALUE})")
    private double seconds;

    Duration each() {
        return Duration.ofNanos((long) (seconds * 1e9));
    }

    int warmUps() {
        return warmUps;
    }

    int rounds() {
        return rounds;
    }

    Rounds run(List<Variant> variants) throws Exception {
        int samples = (warmUps + rounds) * variants.size();
        Countdown countdown = new Countdown(System.err, samples, each().multipliedBy(samples));
        return Rounds.run(variants, warmUps, rounds, each(), countdown);
    }

    /** In words, for the line above a table. */
    @Override
    public String toString() {
        return String.format(
                Locale.ROOT, "%d rounds of %.1f s each; medians of the rounds, ratios within a round", rounds, seconds);
    }
}
