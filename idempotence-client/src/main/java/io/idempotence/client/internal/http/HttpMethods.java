package io.idempotence.client.internal.http;

import java.util.Locale;
import java.util.Set;

/** Properties of HTTP methods. */
public final class HttpMethods {
    private static final Set<String> SAFE = Set.of("GET", "HEAD", "OPTIONS", "TRACE");
    private static final Set<String> UNSAFE = Set.of("POST", "PUT", "PATCH", "DELETE");
    private static final String OTHER = "OTHER";

    private HttpMethods() {}

    /** Whether a method is safe (GET, HEAD, OPTIONS, TRACE). Its requests never carry an ID. */
    public static boolean isSafe(String method) {
        return SAFE.contains(method.toUpperCase(Locale.ROOT));
    }

    /** The name of a method in settings and metrics: one of few, whatever methods callers use. */
    public static String label(String method) {
        String upper = method.toUpperCase(Locale.ROOT);
        return SAFE.contains(upper) || UNSAFE.contains(upper) ? upper : OTHER;
    }
}
