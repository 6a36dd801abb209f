package io.idempotence.benchmarks;

import io.idempotence.benchmarks.jmh.FeignCallBenchmark;
import io.idempotence.benchmarks.jmh.ServerBenchmark;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.Callable;
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
import picocli.CommandLine.Option;

/** JMH over both halves, without a network. In each round every benchmark gets a JVM of its own, one after the other. */
@Command(name = "jmh", sortOptions = false, description = "Time and allocation of single steps of both halves.")
final class JmhCommand implements Callable<Integer> {
    private static final int MANY = 16;
    private static final String ALLOCATED = "gc.alloc.rate.norm";

    @Option(names = "--help", usageHelp = true, description = "Print this and exit.")
    boolean help;

    @Option(names = "--rounds", defaultValue = "3", description = "JVMs for each benchmark (${DEFAULT-VALUE})")
    private int rounds;

    @Option(
            names = "--warm-up-seconds",
            defaultValue = "15",
            description =
                    "in each, longer on a busy machine: an unfinished compilation looks like a cost (${DEFAULT-VALUE})")
    private int warmUpSeconds;

    @Option(names = "--seconds", defaultValue = "5", description = "of measuring in each (${DEFAULT-VALUE})")
    private int seconds;

    @Option(
            names = "--only",
            defaultValue = "client,server",
            split = ",",
            description = "which half (${DEFAULT-VALUE})")
    private List<String> only = List.of();

    private final Map<Run, List<Score>> scores = new LinkedHashMap<>();

    private record Run(Class<?> type, String benchmark, int threads) {}

    private record Score(double nanos, double bytes) {}

    @Override
    public Integer call() throws Exception {
        List<Run> runs = new ArrayList<>();
        if (only.contains("client")) {
            for (int threads : new int[] {1, MANY}) {
                for (String benchmark : List.of("id", "plain", "plainWithId", "ours")) {
                    runs.add(new Run(FeignCallBenchmark.class, benchmark, threads));
                }
            }
        }
        if (only.contains("server")) {
            for (String benchmark :
                    List.of("claimAndComplete", "replay", "encode", "decode", "parseBare", "parseQuoted")) {
                runs.add(new Run(ServerBenchmark.class, benchmark, 1));
            }
        }
        for (int round = 0; round < rounds; round++) {
            for (int i = 0; i < runs.size(); i++) {
                Run run = runs.get((i + round) % runs.size());
                scores.computeIfAbsent(run, r -> new ArrayList<>()).add(measure(run));
            }
            System.err.printf("round %d of %d%n", round + 1, rounds);
        }
        report(runs);
        return 0;
    }

    private Score measure(Run run) throws RunnerException {
        Options options = new OptionsBuilder()
                .include("\\Q" + run.type.getName() + "." + run.benchmark + "\\E$")
                .threads(run.threads)
                .forks(1)
                .warmupIterations(warmUpSeconds)
                .warmupTime(TimeValue.seconds(1))
                .measurementIterations(seconds)
                .measurementTime(TimeValue.seconds(1))
                .addProfiler(GCProfiler.class)
                .verbosity(VerboseMode.SILENT)
                .build();
        RunResult result = new Runner(options).runSingle();
        Result<?> allocated =
                Objects.requireNonNull(result.getSecondaryResults().get(ALLOCATED), ALLOCATED);
        return new Score(result.getPrimaryResult().getScore(), allocated.getScore());
    }

    private void report(List<Run> runs) {
        Report report = new Report(System.out);
        report.line(
                "%d JVMs for each, in turn, %d s of warm-up and %d s of measuring; medians.",
                rounds, warmUpSeconds, seconds);
        report.table("step", "threads", "ns", "bytes allocated");
        for (Run run : runs) {
            report.row(
                    run.type.getSimpleName().replace("Benchmark", "") + "." + run.benchmark,
                    run.threads,
                    nanos(run),
                    bytes(run));
        }
        if (only.contains("client")) {
            targets(report);
        }
    }

    private void targets(Report report) {
        report.blank();
        report.atMost(
                "µs added to a call beyond the ID",
                3,
                perRound(1, (plain, withId, id, ours) -> (ours.nanos - plain.nanos - id.nanos) / 1e3));
        report.atMost(
                "bytes added to a call beyond the ID",
                1024,
                perRound(1, (plain, withId, id, ours) -> ours.bytes - plain.bytes - id.bytes));
        report.line(
                "  - beside a caller that makes an ID and sends it: %.2f µs, %.0f bytes",
                perRound(1, (plain, withId, id, ours) -> (ours.nanos - withId.nanos) / 1e3),
                perRound(1, (plain, withId, id, ours) -> ours.bytes - withId.bytes));
        report.atLeast("how " + MANY + " threads scale ÷ how plain Feign scales", 0.95, scaling("plain"));
        report.line("  - ÷ how plain Feign with an ID scales: %.2f", scaling("plainWithId"));
    }

    @FunctionalInterface
    private interface Figure {
        double of(Score plain, Score withId, Score id, Score ours);
    }

    private double perRound(int threads, Figure figure) {
        double[] values = new double[rounds];
        for (int round = 0; round < rounds; round++) {
            values[round] = figure.of(
                    client("plain", threads, round),
                    client("plainWithId", threads, round),
                    client("id", threads, round),
                    client("ours", threads, round));
        }
        return Rounds.median(values);
    }

    private double scaling(String base) {
        double[] values = new double[rounds];
        for (int round = 0; round < rounds; round++) {
            double ours = client("ours", 1, round).nanos / client("ours", MANY, round).nanos;
            double theirs = client(base, 1, round).nanos / client(base, MANY, round).nanos;
            values[round] = ours / theirs;
        }
        return Rounds.median(values);
    }

    private Score client(String benchmark, int threads, int round) {
        return of(new Run(FeignCallBenchmark.class, benchmark, threads)).get(round);
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
