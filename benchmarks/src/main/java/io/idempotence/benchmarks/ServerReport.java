package io.idempotence.benchmarks;

import io.idempotence.benchmarks.ServerVariant.Comparison;
import java.io.IOException;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.function.ToDoubleFunction;
import java.util.stream.Collectors;

/**
 * The tables, plots and targets of the server half.
 *
 * @param measured by the number of connections, in order
 * @param variants that were measured
 * @param networks round-trip times in µs, as text
 * @param networkTimes the measured ones, in words
 * @param method how it was measured
 */
record ServerReport(
        Map<Integer, Rounds> measured,
        Set<ServerVariant> variants,
        Collection<String> networks,
        String networkTimes,
        String method) {
    private static final String FLOOR = ServerCommand.path(ServerVariant.FLOOR, "");
    private static final String BARE = ServerCommand.path(ServerVariant.BARE, "");
    /** The load at which the costs are shown, if it was measured. */
    private static final int USUAL_CONNECTIONS = 16;

    void publish(ResultsOption results) throws IOException {
        firstRequests(results);
        costs(results);
        if (!networks.isEmpty()) {
            networks(results);
        }
        if (variants.containsAll(List.of(ServerVariant.GET, ServerVariant.REPLAY))) {
            replays(results);
        }
        if (variants.contains(ServerVariant.STATEMENTS)) {
            database(results);
        }
        if (variants.contains(ServerVariant.REDIS)) {
            targets(results);
        }
    }

    private void firstRequests(ResultsOption results) throws IOException {
        Table table = new Table(
                "connections",
                "<handler",
                "requests/s",
                "÷ floor",
                "added p50 ÷ floor",
                "p50 µs",
                "p99 µs",
                "p99.9 µs");
        List<ServerVariant> rows = of(Comparison.FIRST_REQUESTS);
        measured.forEach((connections, rounds) -> rows.forEach(variant -> {
            String name = ServerCommand.path(variant, "");
            table.row(
                    connections,
                    variant.title,
                    rounds.median(name, Sample::perSecond),
                    rounds.medianOfRounds(throughput(name, FLOOR)),
                    variant == ServerVariant.BARE ? "" : rounds.medianOfRounds(addedP50(name, FLOOR)),
                    rounds.median(name, Sample::p50),
                    rounds.percentile(name, 99),
                    rounds.percentile(name, 99.9));
        }));
        Plot plot = overConnections("server", "First requests", "requests/s ÷ floor");
        rows.forEach(variant -> plot.bars(
                variant.title,
                each(rounds -> rounds.medianOfRounds(throughput(ServerCommand.path(variant, ""), FLOOR)))));
        results.publish("server", method + refusals(), table, plot);
    }

    private void costs(ResultsOption results) throws IOException {
        int connections = usualConnections();
        Rounds rounds = rounds(connections);
        List<ServerVariant> rows = of(Comparison.FIRST_REQUESTS);
        Table table =
                new Table("<handler", "CPU µs, JVM", "CPU µs, Redis", "bytes allocated", "bytes beyond bare handler");
        ToDoubleFunction<Rounds.Round> bare = round -> round.of(BARE).allocated();
        rows.forEach(variant -> {
            String name = ServerCommand.path(variant, "");
            table.row(
                    variant.title,
                    rounds.median(name, Sample::cpu),
                    rounds.median(name, Sample::redisCpu),
                    rounds.median(name, Sample::allocated),
                    variant == ServerVariant.BARE
                            ? ""
                            : rounds.medianOfRounds(round -> round.of(name).allocated() - bare.applyAsDouble(round)));
        });
        List<String> titles = rows.stream().map(variant -> variant.title).toList();
        Function<ToDoubleFunction<Sample>, double[]> figures = figure -> rows.stream()
                .mapToDouble(variant -> rounds.median(ServerCommand.path(variant, ""), figure))
                .toArray();
        Plot cpu = new Plot("cost-cpu", "Processor time of a request", "handler", titles, "µs")
                .bars("JVM that serves", figures.apply(Sample::cpu))
                .bars("Redis", figures.apply(Sample::redisCpu));
        Plot allocated = new Plot("cost-allocation", "Allocation of a request", "handler", titles, "bytes")
                .bars("JVM that serves", figures.apply(Sample::allocated));
        results.publish("cost", connections + " connections; " + method, table, cpu, allocated);
    }

    private void networks(ResultsOption results) throws IOException {
        Table table = new Table(
                "connections",
                "network µs",
                "<handler",
                "requests/s",
                "÷ floor",
                "added p50 ÷ floor",
                "p50 µs",
                "p99 µs",
                "p99.9 µs");
        List<ServerVariant> rows = of(Comparison.FIRST_REQUESTS).stream()
                .filter(variant -> variant.overNetworks)
                .toList();
        measured.forEach((connections, rounds) -> networks.forEach(network -> rows.forEach(variant -> {
            String name = ServerCommand.path(variant, network);
            String floor = ServerCommand.path(ServerVariant.FLOOR, network);
            table.row(
                    connections,
                    network,
                    variant.title,
                    rounds.median(name, Sample::perSecond),
                    rounds.medianOfRounds(throughput(name, floor)),
                    rounds.medianOfRounds(addedP50(name, floor)),
                    rounds.median(name, Sample::p50),
                    rounds.percentile(name, 99),
                    rounds.percentile(name, 99.9));
        })));
        Plot plot = overConnections("network", "First requests over a slower network to Redis", "requests/s ÷ floor");
        rows.stream()
                .filter(variant -> variant != ServerVariant.FLOOR)
                .forEach(variant -> networks.forEach(network -> {
                    ToDoubleFunction<Rounds.Round> ratio = throughput(
                            ServerCommand.path(variant, network), ServerCommand.path(ServerVariant.FLOOR, network));
                    plot.bars(variant.title + ", " + network + " µs", each(rounds -> rounds.medianOfRounds(ratio)));
                }));
        results.publish("network", method + "\n" + networkTimes, table, plot);
    }

    private void replays(ResultsOption results) throws IOException {
        compare(
                results,
                "replay",
                "Replays",
                "one raw GET",
                List.of(ServerVariant.GET, ServerVariant.REPLAY),
                ServerVariant.GET);
    }

    private void database(ResultsOption results) throws IOException {
        List<ServerVariant> rows = variants.stream()
                .filter(ServerVariant::needsDatabase)
                .sorted(Comparator.comparing((ServerVariant variant) -> variant != ServerVariant.STATEMENTS)
                        .thenComparing(Comparator.naturalOrder()))
                .toList();
        compare(results, "database", "First requests on PostgreSQL", "two statements", rows, ServerVariant.STATEMENTS);
    }

    private void compare(
            ResultsOption results,
            String name,
            String title,
            String baseTitle,
            List<ServerVariant> rows,
            ServerVariant baseVariant)
            throws IOException {
        String base = ServerCommand.path(baseVariant, "");
        Table table = new Table(
                "connections",
                "<handler",
                "requests/s",
                "÷ " + baseTitle,
                "p50 µs",
                "p99 µs",
                "p99.9 µs",
                "CPU µs, JVM",
                "bytes allocated");
        measured.forEach((connections, rounds) -> rows.forEach(variant -> {
            String path = ServerCommand.path(variant, "");
            table.row(
                    connections,
                    variant.title,
                    rounds.median(path, Sample::perSecond),
                    rounds.medianOfRounds(throughput(path, base)),
                    rounds.median(path, Sample::p50),
                    rounds.percentile(path, 99),
                    rounds.percentile(path, 99.9),
                    rounds.median(path, Sample::cpu),
                    rounds.median(path, Sample::allocated));
        }));
        Plot plot = overConnections(name, title, "requests/s ÷ " + baseTitle);
        rows.forEach(variant -> plot.bars(
                variant.title,
                each(rounds -> rounds.medianOfRounds(throughput(ServerCommand.path(variant, ""), base)))));
        results.publish(name, method, table, plot);
    }

    /** What was refused, of which no table has a column. */
    private String refusals() {
        return measured.entrySet().stream()
                .flatMap(entry -> entry.getValue().names().stream()
                        .filter(name -> entry.getValue().refused(name) > 0)
                        .map(name -> "%s with %d connections (%.2f %%)"
                                .formatted(
                                        name,
                                        entry.getKey(),
                                        100 * entry.getValue().refused(name))))
                .collect(Collectors.collectingAndThen(
                        Collectors.joining(",\n"),
                        found -> found.isEmpty() ? "" : "\nRefused with 503: " + found + "."));
    }

    private void targets(ResultsOption results) throws IOException {
        Targets targets = new Targets();
        String redis = ServerCommand.path(ServerVariant.REDIS, "");
        variants.stream()
                .filter(variant -> variant.target > 0)
                .sorted()
                .forEach(variant -> measured.forEach((connections, rounds) -> {
                    if (connections == 16 || connections == 64) {
                        targets.atLeast(
                                "requests/s, " + variant.title + " ÷ floor, connections: " + connections,
                                variant.target,
                                rounds,
                                throughput(ServerCommand.path(variant, ""), FLOOR));
                    }
                }));
        measured.forEach((connections, rounds) -> {
            if (connections == 1 || connections == 16) {
                targets.atMost(
                        "added p50, " + ServerVariant.REDIS.title + " ÷ floor, connections: " + connections,
                        connections == 1 ? 1.10 : 1.00,
                        rounds,
                        addedP50(redis, FLOOR));
            }
        });
        int connections = usualConnections();
        if (variants.containsAll(List.of(ServerVariant.GET, ServerVariant.REPLAY))) {
            targets.atLeast(
                    "replays/s ÷ one raw GET, connections: " + connections,
                    0.95,
                    rounds(connections),
                    throughput(
                            ServerCommand.path(ServerVariant.REPLAY, ""), ServerCommand.path(ServerVariant.GET, "")));
        }
        targets.atMost(
                "bytes allocated on Redis beyond bare handler",
                4_096,
                rounds(connections),
                round -> round.of(redis).allocated() - round.of(BARE).allocated());
        targets.publish("server-targets", results);
    }

    private List<ServerVariant> of(Comparison comparison) {
        return variants.stream()
                .filter(variant -> variant.comparison == comparison)
                .sorted()
                .toList();
    }

    private int usualConnections() {
        return measured.containsKey(USUAL_CONNECTIONS)
                ? USUAL_CONNECTIONS
                : measured.keySet().iterator().next();
    }

    private Rounds rounds(int connections) {
        Rounds rounds = measured.get(connections);
        if (rounds == null) {
            throw new IllegalArgumentException(connections + " connections were not measured");
        }
        return rounds;
    }

    private Plot overConnections(String name, String title, String figure) {
        List<String> groups = measured.keySet().stream().map(String::valueOf).toList();
        return new Plot(name, title, "connections", groups, figure);
    }

    private double[] each(ToDoubleFunction<Rounds> figure) {
        return measured.values().stream().mapToDouble(figure).toArray();
    }

    private static ToDoubleFunction<Rounds.Round> throughput(String name, String base) {
        return round -> round.ratio(name, base, Sample::perSecond);
    }

    private static ToDoubleFunction<Rounds.Round> addedP50(String name, String base) {
        return round -> (round.of(name).p50() - round.of(BARE).p50())
                / (round.of(base).p50() - round.of(BARE).p50());
    }
}
