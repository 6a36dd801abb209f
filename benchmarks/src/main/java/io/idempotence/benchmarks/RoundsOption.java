package io.idempotence.benchmarks;

import java.time.Duration;
import java.util.List;
import picocli.CommandLine.Option;

/** How long a comparison takes. */
final class RoundsOption {
    @Option(names = "--rounds", defaultValue = "9", description = "rounds that count (${DEFAULT-VALUE})")
    private int rounds;

    @Option(names = "--warm-ups", defaultValue = "6", description = "rounds before them (${DEFAULT-VALUE})")
    private int warmUps;

    @Option(names = "--seconds", defaultValue = "3", description = "of each variant in a round (${DEFAULT-VALUE})")
    private int seconds;

    Rounds run(List<Variant> variants) throws Exception {
        return Rounds.run(variants, warmUps, rounds, Duration.ofSeconds(seconds), System.err);
    }

    /** In words, for the line above a table. */
    @Override
    public String toString() {
        return rounds + " rounds of " + seconds + " s each; medians of the rounds, ratios within a round";
    }
}
