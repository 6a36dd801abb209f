package io.idempotence.benchmarks;

import io.idempotence.benchmarks.ServerVariant.Comparison;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
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

    private static final List<String> NO_NETWORK = List.of("");

    /** One row of a table: a variant under one load. */
    private record Row(int connections, String network, ServerVariant variant, Rounds rounds) {
        String name() {
            return ServerCommand.path(variant, network);
        }

        double median(ToDoubleFunction<Sample> figure) {
            return rounds.median(name(), figure);
        }

        double throughputOver(ServerVariant base) {
            return rounds.medianOfRounds(throughput(name(), ServerCommand.path(base, network)));
        }

        double addedP50OverFloor() {
            return rounds.medianOfRounds(addedP50(name(), ServerCommand.path(ServerVariant.FLOOR, network)));
        }

        double allocatedBeyondBare() {
            return rounds.medianOfRounds(
                    round -> round.of(name()).allocated() - round.of(BARE).allocated());
        }

        String series() {
            return network.isEmpty() ? variant.title : variant.title + ", " + network + " µs";
        }
    }

    private record Column(String title, Function<Row, Object> cell) {}

    private static final Column CONNECTIONS = new Column("connections", Row::connections);
    private static final Column NETWORK = new Column("network µs", Row::network);
    private static final Column HANDLER = new Column("<handler", row -> row.variant.title);
    private static final Column RATE = new Column("requests/s", row -> row.median(Sample::perSecond));
    private static final Column ADDED_P50 =
            new Column("added p50 ÷ floor", row -> row.variant == ServerVariant.BARE ? "" : row.addedP50OverFloor());
    private static final Column P50 = new Column("p50 µs", row -> row.median(Sample::p50));
    private static final Column P99 = new Column("p99 µs", row -> row.rounds.percentile(row.name(), 99));
    private static final Column P99_9 = new Column("p99.9 µs", row -> row.rounds.percentile(row.name(), 99.9));
    private static final Column CPU = new Column("CPU µs, JVM", row -> row.median(Sample::cpu));
    private static final Column REDIS_CPU = new Column("CPU µs, Redis", row -> row.median(Sample::redisCpu));
    private static final Column ALLOCATED = new Column("bytes allocated", row -> row.median(Sample::allocated));
    private static final Column BEYOND_BARE = new Column(
            "bytes beyond bare handler", row -> row.variant == ServerVariant.BARE ? "" : row.allocatedBeyondBare());

    private static final List<Column> LATENCIES = List.of(ADDED_P50, P50, P99, P99_9);
    private static final List<Column> COSTS = List.of(P50, P99, P99_9, CPU, ALLOCATED);

    private static Column over(ServerVariant base) {
        return new Column("÷ " + base.title, row -> row.throughputOver(base));
    }

    void publish(ResultsOption results) throws IOException {
        List<ServerVariant> first = of(Comparison.FIRST_REQUESTS);
        List<ServerVariant> replays = of(Comparison.REPLAYS);
        compare(
                results,
                "server",
                "First requests",
                refusals(),
                ServerVariant.FLOOR,
                rows(first, NO_NETWORK),
                LATENCIES);
        costs(results);
        if (!networks.isEmpty()) {
            List<ServerVariant> distant =
                    first.stream().filter(variant -> variant.overNetworks).toList();
            String title = "First requests over a slower network to Redis";
            compare(
                    results,
                    "network",
                    title,
                    "\n" + networkTimes,
                    ServerVariant.FLOOR,
                    rows(distant, networks),
                    LATENCIES);
        }
        if (replays.size() > 1) {
            compare(results, "replay", "Replays", "", ServerVariant.GET, rows(replays, NO_NETWORK), COSTS);
        }
        if (variants.contains(ServerVariant.STATEMENTS)) {
            List<ServerVariant> inDatabase = variants.stream()
                    .filter(ServerVariant::needsDatabase)
                    .sorted()
                    .toList();
            String title = "First requests on PostgreSQL";
            compare(results, "database", title, "", ServerVariant.STATEMENTS, rows(inDatabase, NO_NETWORK), COSTS);
        }
        if (variants.contains(ServerVariant.REDIS)) {
            targets(results);
        }
    }

    /** Publishes requests/s of variants divided by one variant's, and more columns. */
    private void compare(
            ResultsOption results,
            String name,
            String title,
            String remarks,
            ServerVariant base,
            List<Row> rows,
            List<Column> more)
            throws IOException {
        List<Column> columns = new ArrayList<>(List.of(CONNECTIONS, HANDLER, RATE, over(base)));
        boolean distant = rows.stream().anyMatch(row -> !row.network.isEmpty());
        if (distant) {
            columns.add(1, NETWORK);
        }
        columns.addAll(more);
        // Bars of 1.00 for each network would only take room.
        List<Row> drawn =
                rows.stream().filter(row -> !distant || row.variant != base).toList();
        results.publish(name, method + remarks, table(rows, columns), plot(name, title, base, drawn));
    }

    private void costs(ResultsOption results) throws IOException {
        int connections = usualConnections();
        List<Row> rows = rows(of(Comparison.FIRST_REQUESTS), NO_NETWORK).stream()
                .filter(row -> row.connections == connections)
                .toList();
        Table table = table(rows, List.of(HANDLER, CPU, REDIS_CPU, ALLOCATED, BEYOND_BARE));
        List<String> titles = rows.stream().map(row -> row.variant.title).toList();
        Function<ToDoubleFunction<Sample>, double[]> figures =
                figure -> rows.stream().mapToDouble(row -> row.median(figure)).toArray();
        Plot cpu = new Plot("cost-cpu", "Processor time of a request", "handler", titles, "µs")
                .bars("JVM that serves", figures.apply(Sample::cpu))
                .bars("Redis", figures.apply(Sample::redisCpu));
        Plot allocated = new Plot("cost-allocation", "Allocation of a request", "handler", titles, "bytes")
                .bars("JVM that serves", figures.apply(Sample::allocated));
        results.publish("cost", connections + " connections; " + method, table, cpu, allocated);
    }

    private List<Row> rows(List<ServerVariant> compared, Collection<String> over) {
        List<Row> rows = new ArrayList<>();
        measured.forEach((connections, rounds) -> over.forEach(
                network -> compared.forEach(variant -> rows.add(new Row(connections, network, variant, rounds)))));
        return rows;
    }

    private static Table table(List<Row> rows, List<Column> columns) {
        Table table = new Table(columns.stream().map(Column::title).toArray(String[]::new));
        rows.forEach(row ->
                table.row(columns.stream().map(column -> column.cell.apply(row)).toArray()));
        return table;
    }

    private Plot plot(String name, String title, ServerVariant base, List<Row> rows) {
        List<String> groups = measured.keySet().stream().map(String::valueOf).toList();
        Plot plot = new Plot(name, title, "connections", groups, "requests/s ÷ " + base.title);
        rows.stream()
                .collect(Collectors.groupingBy(Row::series, LinkedHashMap::new, Collectors.toList()))
                .forEach((series, ofSeries) -> plot.bars(
                        series,
                        ofSeries.stream()
                                .mapToDouble(row -> row.throughputOver(base))
                                .toArray()));
        return plot;
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

    private static ToDoubleFunction<Rounds.Round> throughput(String name, String base) {
        return Rounds.ratio(name, base, Sample::perSecond);
    }

    private static ToDoubleFunction<Rounds.Round> addedP50(String name, String base) {
        return round -> (round.of(name).p50() - round.of(BARE).p50())
                / (round.of(base).p50() - round.of(BARE).p50());
    }
}
