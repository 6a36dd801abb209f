package io.idempotence.client.internal.http;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** Look-ups in header maps. */
public final class HeaderLines {
    private HeaderLines() {}

    /** The lines of a header, whatever the case of its name; empty if there is none. */
    public static List<String> of(Map<String, Collection<String>> headers, String name) {
        List<String> lines = List.of();
        for (String header : headers.keySet()) {
            if (header.equalsIgnoreCase(name)) {
                List<String> all = new ArrayList<>(lines);
                all.addAll(headers.get(header));
                lines = all;
            }
        }
        return lines;
    }

    /** Whether a header describes the bytes of a body, so that a response without one does not have it. */
    public static boolean isOfBody(String name) {
        return name.equalsIgnoreCase("Content-Length")
                || name.equalsIgnoreCase("Content-Encoding")
                || name.equalsIgnoreCase("Transfer-Encoding");
    }

    /** Whether these values of {@code Content-Type} are those of a multipart body, which has a random boundary. */
    public static boolean isMultipart(List<String> contentTypes) {
        return contentTypes.stream()
                .anyMatch(type -> type.toLowerCase(Locale.ROOT).startsWith("multipart/"));
    }
}
