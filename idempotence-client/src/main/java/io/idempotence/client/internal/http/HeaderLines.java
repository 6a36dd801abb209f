package io.idempotence.client.internal.http;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;

/** Look-ups in header maps. */
public final class HeaderLines {
    private HeaderLines() {}

    /** The lines of a header, whatever the case of its name; empty if there is none. */
    public static List<String> of(Map<String, Collection<String>> headers, String name) {
        List<String> lines = List.of();
        for (Map.Entry<String, Collection<String>> header : headers.entrySet()) {
            if (header.getKey().equalsIgnoreCase(name)) {
                lines = lines.isEmpty() ? List.copyOf(header.getValue()) : joined(lines, header.getValue());
            }
        }
        return lines;
    }

    private static List<String> joined(List<String> before, Collection<String> lines) {
        List<String> all = new ArrayList<>(before);
        all.addAll(lines);
        return all;
    }
}
