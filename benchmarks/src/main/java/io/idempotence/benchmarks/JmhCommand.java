package io.idempotence.benchmarks;

import io.idempotence.benchmarks.jmh.FeignCallBenchmark;
import io.idempotence.benchmarks.jmh.ServerBenchmark;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.function.ToDoubleFunction;
import java.util.stream.IntStream;
import org.openjdk.jmh.profile.GCProfiler;
import org.openjdk.jmh.results.Result;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.Options;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.openjdk.jmh.runner.options.VerboseMode;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** The JMH benchmarks of both halves, without a network. In each round every benchmark gets a JVM of its own, one after the other. */
@Command(name = "jmh", sortOptions = false, description = "Time and allocation of single steps of both halves.")
final class JmhCommand implements Callable<Integer> {
    private static final Map<String, String> TITLES = Map.of(
            "plain", "plain Feign",
            "plainWithId", "Feign, ID as parameter",
            "ours", "Feign, ours",
            "claimAndComplete", "claim and complete",
            "parseBare", "parse a bare ID",
            "parseQuoted", "parse a quoted ID");
    /** To start and end one. */
    private static final int JVM_SECONDS = 2;

    private static final String ALLOCATED = "gc.alloc.rate.norm";

    @Option(names = "--rounds", defaultValue = "3", description = "JVMs for each benchmark (${DEFAULT-VALUE})")
    private int rounds;

    @Option(
            names = "--warm-up-seconds",
            defaultValue = "8",
            description =
                    "in each, longer on a busy machine: an unfinished compilation looks like a cost (${DEFAULT-VALUE})")
    private int warmUpSeconds;

    @Option(names = "--seconds", defaultValue = "4", description = "of measuring in each (${DEFAULT-VALUE})")
    private int seconds;

    @Option(
            names = "--only",
            defaultValue = "client,server",
            split = ",",
            description = "which half (${DEFAULT-VALUE})")
    private List<String> only = List.of();

    private final Map<Run, List<Score>> scores = new LinkedHashMap<>();

    @Mixin
    private ResultsOption results = new ResultsOption();

    private record Run(Class<?> type, String benchmark) {}

    private record Score(double nanos, double bytes) {}

    @Override
    public Integer call() throws Exception {
        List<Run> runs = new ArrayList<>();
        if (only.contains("client")) {
            for (String benchmark : List.of("plain", "plainWithId", "ours")) {
                runs.add(new Run(FeignCallBenchmark.class, benchmark));
            }
        }
        if (only.contains("server")) {
            for (String benchmark : List.of("claimAndComplete", "replay", "parseBare", "parseQuoted")) {
                runs.add(new Run(ServerBenchmark.class, benchmark));
            }
        }
        int steps = rounds * runs.size();
        Countdown countdown = new Countdown(
                System.err, steps, Duration.ofSeconds((warmUpSeconds + seconds + JVM_SECONDS) * (long) steps));
        for (int round = 0; round < rounds; round++) {
            for (int i = 0; i < runs.size(); i++) {
                Run run = runs.get((i + round) % runs.size());
                scores.computeIfAbsent(run, r -> new ArrayList<>()).add(measure(run));
            }
            countdown.done(runs.size(), "round %d of %d".formatted(round + 1, rounds));
        }
        report(runs);
        return 0;
    }

    private Score measure(Run run) throws RunnerException {
        Options options = new OptionsBuilder()
                .include("\\Q" + run.type.getName() + "." + run.benchmark + "\\E$")
                .threads(1)
                .forks(1)
                .warmupIterations(warmUpSeconds)
                .warmupTime(TimeValue.seconds(1))
                .measurementIterations(seconds)
                .measurementTime(TimeValue.seconds(1))
                .addProfiler(GCProfiler.class)
                .shouldFailOnError(true)
                .verbosity(VerboseMode.SILENT)
                .build();
        RunResult result = new Runner(options).runSingle();
        Result<?> allocated =
                Objects.requireNonNull(result.getSecondaryResults().get(ALLOCATED), ALLOCATED);
        return new Score(result.getPrimaryResult().getScore(), allocated.getScore());
    }

    private void report(List<Run> runs) throws IOException {
        Table table = new Table("<step", "ns", "bytes allocated");
        runs.forEach(run -> table.row(TITLES.getOrDefault(run.benchmark, run.benchmark), nanos(run), bytes(run)));
        Plot plot = new Plot(
                        "steps",
                        "Single steps",
                        "step",
                        runs.stream()
                                .map(run -> TITLES.getOrDefault(run.benchmark, run.benchmark))
                                .toList(),
                        "ns")
                .bars("one thread", runs.stream().mapToDouble(this::nanos).toArray());
        String text = "One thread, %d JVMs for each step, in turn, %d s of warm-up and %d s of measuring; medians.";
        results.publish("steps", text.formatted(rounds, warmUpSeconds, seconds), table, plot);
        if (only.contains("client")) {
            targets();
        }
    }

    private void targets() throws IOException {
        Targets targets = new Targets();
        double nanos = beyondOwnId(Score::nanos);
        targets.add("ns beyond a caller's own ID: at most 1,500", nanos, "", nanos <= 1_500);
        double bytes = beyondOwnId(Score::bytes);
        targets.add("bytes beyond a caller's own ID: at most 300", bytes, "", bytes <= 300);
        targets.publish("steps-targets", results);
    }

    private double beyondOwnId(ToDoubleFunction<Score> figure) {
        List<Score> ours = of(new Run(FeignCallBenchmark.class, "ours"));
        List<Score> withId = of(new Run(FeignCallBenchmark.class, "plainWithId"));
        return Rounds.median(IntStream.range(0, rounds)
                .mapToDouble(round -> figure.applyAsDouble(ours.get(round)) - figure.applyAsDouble(withId.get(round)))
                .toArray());
    }

    private double nanos(Run run) {
        return Rounds.median(of(run).stream().mapToDouble(Score::nanos).toArray());
    }

    private double bytes(Run run) {
        return Rounds.median(of(run).stream().mapToDouble(Score::bytes).toArray());
    }

    private List<Score> of(Run run) {
        return Objects.requireNonNull(scores.get(run), run.benchmark);
    }
}
