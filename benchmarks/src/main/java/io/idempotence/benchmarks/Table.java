package io.idempotence.benchmarks;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/** A table in Markdown. */
final class Table {
    private final List<String> lines = new ArrayList<>();

    /** Columns that begin with a {@code <} hold text, the others numbers. */
    Table(String... columns) {
        row(Arrays.stream(columns)
                .map(column -> column.startsWith("<") ? column.substring(1) : column)
                .toArray());
        lines.add(Arrays.stream(columns)
                .map(column -> column.startsWith("<") ? "---|" : "---:|")
                .collect(Collectors.joining("", "|", "")));
    }

    Table row(Object... cells) {
        lines.add(Arrays.stream(cells)
                .map(cell -> cell instanceof Double number ? number(number) : cell.toString())
                .collect(Collectors.joining(" | ", "| ", " |")));
        return this;
    }

    /** Three digits, more before the point. */
    static String number(double value) {
        double size = Math.abs(value);
        return String.format(Locale.ROOT, size >= 100 ? "%,.0f" : size >= 10 ? "%.1f" : "%.2f", value);
    }

    @Override
    public String toString() {
        return String.join("\n", lines);
    }
}
