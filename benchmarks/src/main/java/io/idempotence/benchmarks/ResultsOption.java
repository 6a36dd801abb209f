package io.idempotence.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** Where results go: standard output, a folder, and the documentation if asked for. */
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

    /** Publishes one result: a text and a table, of which either may be empty, and plots. */
    void publish(String name, Object text, Object table, Plot... plots) throws IOException {
        Files.createDirectories(out);
        System.out.printf("%n## %s%n%n%s", name, markdown(text, table, ""));
        Files.writeString(out.resolve(name + ".md"), markdown(text, table, "", plots));
        for (Plot plot : plots) {
            plot.write(out);
        }
        if (docs != null) {
            Path folder = Files.createDirectories(docs.resolve(PLOTS));
            for (Plot plot : plots) {
                plot.write(folder);
            }
            replace(docs.resolve(PAGE), name, markdown(text, table, PLOTS + "/", plots));
        }
    }

    private static String markdown(Object text, Object table, String prefix, Plot... plots) {
        Stream<String> images =
                Arrays.stream(plots).map(plot -> "![%s](%s%s)".formatted(plot.description(), prefix, plot.fileName()));
        return Stream.concat(Stream.of(text.toString(), table.toString()), images)
                .filter(part -> !part.isEmpty())
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
