package io.idempotence.it.matrix;

import static org.assertj.core.api.Assertions.assertThat;

import io.idempotence.it.container.Container;
import io.idempotence.it.container.ServletServer;
import io.idempotence.it.matrix.Finding.Sight;
import io.idempotence.it.matrix.HandlerKind.Column;
import io.idempotence.it.matrix.Matrix.Registration;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** The tables of docs/filters-compared.md for the Servlet API of this virtual machine. */
final class FiltersPage {
    private static final Path PAGE = Path.of("../docs/filters-compared.md");
    private static final String SERVLET = ServletServer.isServlet61() ? "Servlet 6.1" : "Servlet 6.0";
    private static final String BEGIN = "<!-- measured with " + SERVLET + " -->\n";
    private static final String END = "<!-- end -->\n";
    private static final String WRITE = "filters.page";
    private static final String COMMAND =
            "mvn -B -Pall verify -pl integration-tests -am -Dit.test=FilterMatrixIT -Dtest=None"
                    + " -Dsurefire.failIfNoSpecifiedTests=false -Dfailsafe.failIfNoSpecifiedTests=false -D" + WRITE
                    + "=write";

    private FiltersPage() {}

    /** Compares the tables with what was measured, or writes them if that was asked for. */
    static void check(List<Finding> findings) throws IOException {
        assertThat(findings).flatExtracting(Finding::differences).isEmpty();
        String page = Files.readString(PAGE);
        int begin = page.indexOf(BEGIN);
        int end = page.indexOf(END, begin);
        assertThat(begin).as("the line %s in %s", BEGIN.trim(), PAGE).isNotNegative();
        String measured = BEGIN + tables(findings);
        if ("write".equals(System.getProperty(WRITE))) {
            Files.writeString(PAGE, page.substring(0, begin) + measured + page.substring(end));
        } else {
            assertThat(page.substring(begin, end))
                    .as("%s shows something else than was measured with %s. Write it with: %s", PAGE, SERVLET, COMMAND)
                    .isEqualTo(measured);
        }
    }

    private static String tables(List<Finding> findings) {
        List<String> lines = new ArrayList<>();
        lines.add("### " + SERVLET + ": " + containers(findings));
        lines.add("");
        addSights(
                lines,
                findings.stream()
                        .filter(finding -> finding.registration() == Registration.INSTALLED)
                        .toList());
        add(lines, "Lost without the idempotence filter as well:", findings, finding -> finding.lost());
        for (Sight sight : List.of(Sight.REFUSED, Sight.UNFILTERED)) {
            add(
                    lines,
                    "Replays that are " + sight.title()
                            + " where the application maps the idempotence filter to REQUEST dispatches only:",
                    findings,
                    finding -> finding.retry().contains(sight));
        }
        return String.join("\n", lines) + "\n";
    }

    private static void addSights(List<String> lines, List<Finding> findings) {
        List<String> titles = new ArrayList<>(List.of("other filter"));
        Stream.of(Column.values()).map(Column::title).forEach(titles::add);
        titles.addAll(List.of("replay", "waiting duplicate"));
        addRow(lines, titles);
        addRow(lines, titles.stream().map(title -> "---").toList());
        for (Stack stack : Stack.all()) {
            List<Finding> ofStack = findings.stream()
                    .filter(finding -> finding.stack().equals(stack))
                    .toList();
            List<String> row = new ArrayList<>(List.of(stack.toString()));
            for (Column column : Column.values()) {
                row.add(sights(ofStack, finding -> finding.kind().column() == column, FiltersPage::first));
            }
            row.add(sights(ofStack, finding -> true, Finding::retry));
            row.add(sights(ofStack, finding -> true, Finding::waiting));
            addRow(lines, row);
        }
    }

    /** A response that is lost without the idempotence filter may come whole with it, or not, from run to run. */
    private static Set<Sight> first(Finding finding) {
        return finding.lost() ? EnumSet.of(Sight.LOST) : finding.first();
    }

    private static String sights(List<Finding> findings, Predicate<Finding> of, Function<Finding, Set<Sight>> sight) {
        EnumSet<Sight> seen = EnumSet.noneOf(Sight.class);
        findings.stream().filter(of).map(sight).forEach(seen::addAll);
        return seen.stream().map(Sight::title).collect(Collectors.joining(", "));
    }

    private static void add(List<String> lines, String title, List<Finding> findings, Predicate<Finding> which) {
        List<Finding> listed = findings.stream().filter(which).toList();
        if (listed.isEmpty()) {
            return;
        }
        lines.addAll(List.of("", title, ""));
        addRow(lines, List.of("handler", "other filter", "container"));
        addRow(lines, List.of("---", "---", "---"));
        for (HandlerKind kind : HandlerKind.values()) {
            Map<String, Set<String>> filters = new LinkedHashMap<>();
            for (Neighbour neighbour : Neighbour.values()) {
                List<Finding> here = listed.stream()
                        .filter(finding ->
                                finding.kind() == kind && finding.stack().neighbour() == neighbour)
                        .toList();
                if (!here.isEmpty()) {
                    filters.computeIfAbsent(containersOrAll(here), containers -> new LinkedHashSet<>())
                            .add(neighbour.title());
                }
            }
            filters.forEach((containers, titles) ->
                    addRow(lines, List.of(kind.title(), String.join(", ", titles), containers)));
        }
    }

    private static String containersOrAll(List<Finding> findings) {
        String containers = containers(findings);
        return containers.equals(titles(Container.available().stream())) ? "all" : containers;
    }

    private static String containers(List<Finding> findings) {
        return titles(findings.stream().map(Finding::container));
    }

    private static String titles(Stream<Container> containers) {
        return containers.map(Container::title).distinct().collect(Collectors.joining(", "));
    }

    private static void addRow(List<String> lines, List<String> cells) {
        lines.add("| " + String.join(" | ", cells) + " |");
    }
}
