package io.idempotence.client.internal.http;

import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;

/** What is known of HTTP methods. */
public final class HttpMethods {
    private static final Set<String> SAFE = Set.of("GET", "HEAD", "OPTIONS", "TRACE");
    private static final Set<String> UNSAFE = Set.of("POST", "PUT", "PATCH", "DELETE");
    private static final String OTHER = "OTHER";

    private HttpMethods() {}

    /** True if a request may be repeated as often as one likes. It never carries an ID. */
    public static boolean isSafe(String method) {
        return SAFE.contains(method.toUpperCase(Locale.ROOT));
    }

    /** One of {@link #labels()}. */
    public static String label(String method) {
        String upper = method.toUpperCase(Locale.ROOT);
        return SAFE.contains(upper) || UNSAFE.contains(upper) ? upper : OTHER;
    }

    /** The names that methods go by in settings and metrics: few, whatever callers invent. */
    public static Set<String> labels() {
        Set<String> labels = new TreeSet<>(SAFE);
        labels.addAll(UNSAFE);
        labels.add(OTHER);
        return labels;
    }
}
