package io.idempotence.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
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

    /** Publishes one result: a text, a table and its plots. */
    void publish(String name, String text, Table table, Plot... plots) throws IOException {
        Files.createDirectories(out);
        System.out.printf("%n## %s%n%n%s%n%n%s%n", name, text, table);
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

    private static String markdown(String text, Table table, String prefix, Plot... plots) {
        StringBuilder page = new StringBuilder(text + "\n\n" + table + "\n");
        for (Plot plot : List.of(plots)) {
            page.append("\n![")
                    .append(plot)
                    .append("](")
                    .append(prefix + plot.fileName())
                    .append(")\n");
        }
        return page.toString();
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
