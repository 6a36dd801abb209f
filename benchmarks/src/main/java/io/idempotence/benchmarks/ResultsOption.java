package io.idempotence.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** The destinations of results: standard output, a folder, and the documentation if asked for. */
final class ResultsOption {
    /** The page of the documentation, and the folder of its plots. */
    private static final String PAGE = "benchmarks.md";

    private static final String PLOTS = "benchmarks";

    @Option(
            names = "--out",
            defaultValue = "target/benchmarks",
            description = "folder of tables and plots (${DEFAULT-VALUE})")
    private Path out = Path.of("target", "benchmarks");

    @Option(names = "--docs", description = "also puts them into benchmarks.md of this folder")
    private @Nullable Path docs;

    @Option(names = "--load", hidden = true, description = "load average before the first of several commands")
    private double load = Machine.load();

    /** The same options for another command, which must not count what this one did as load. */
    List<String> arguments() {
        List<String> arguments = new ArrayList<>(List.of("--out", out.toString(), "--load", Double.toString(load)));
        if (docs != null) {
            arguments.addAll(List.of("--docs", docs.toString()));
        }
        return arguments;
    }

    /** Publishes a text that belongs to no measurement of its own. */
    void publish(String name, Object content) throws IOException {
        write(name, List.of(content));
    }

    /** Publishes a measurement: how it was done, its table, when and on how busy a machine, and plots. */
    void publish(String name, String method, Table table, Plot... plots) throws IOException {
        write(name, List.of(method, table, Machine.stateOfRun(load)), plots);
    }

    private void write(String name, List<Object> parts, Plot... plots) throws IOException {
        Files.createDirectories(out);
        System.out.printf("%n## %s%n%n%s", name, markdown(parts, ""));
        Files.writeString(out.resolve(name + ".md"), markdown(parts, "", plots));
        for (Plot plot : plots) {
            plot.write(out);
        }
        if (docs != null) {
            Path folder = Files.createDirectories(docs.resolve(PLOTS));
            for (Plot plot : plots) {
                plot.write(folder);
            }
            replace(docs.resolve(PAGE), name, markdown(parts, PLOTS + "/", plots));
        }
    }

    private static String markdown(List<Object> parts, String prefix, Plot... plots) {
        Stream<String> images =
                Arrays.stream(plots).map(plot -> "![%s](%s%s)".formatted(plot.description(), prefix, plot.fileName()));
        return Stream.concat(parts.stream().map(Object::toString), images)
                .collect(Collectors.joining("\n\n", "", "\n"));
    }

    /** Replaces what is between {@code <!-- name -->} and {@code <!-- end of name -->}. */
    private static void replace(Path page, String name, String content) throws IOException {
        Pattern place = Pattern.compile(
                "(<!-- " + Pattern.quote(name) + " -->\\n).*?(<!-- end of " + Pattern.quote(name) + " -->)",
                Pattern.DOTALL);
        Matcher matcher = place.matcher(Files.readString(page));
        if (!matcher.find()) {
            throw new IOException(page + " has no place for the table \"" + name + "\": add the lines <!-- " + name
                    + " --> and <!-- end of " + name + " -->");
        }
        Files.writeString(page, matcher.replaceFirst("$1\n" + Matcher.quoteReplacement(content) + "\n$2"));
    }
}
