package io.idempotence.client.internal.http;

import java.util.Locale;
import java.util.Set;

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

    /** The name that a method goes by in settings and metrics: one of few, whatever callers invent. */
    public static String label(String method) {
        String upper = method.toUpperCase(Locale.ROOT);
        return SAFE.contains(upper) || UNSAFE.contains(upper) ? upper : OTHER;
    }
}
