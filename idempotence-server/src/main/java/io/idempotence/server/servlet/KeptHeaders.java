package io.idempotence.server.servlet;

import java.util.List;
import java.util.Locale;
import java.util.Set;

/** The names of the response headers that are stored and replayed. Content-Type belongs to the body and is always stored. */
final class KeptHeaders {
    static final List<String> STANDARD = List.of(
            "Content-Language",
            "Content-Disposition",
            "Content-Encoding",
            "Location",
            "Content-Location",
            "ETag",
            "Last-Modified",
            "Link",
            "Cache-Control");

    private static final Set<String> NEVER = Set.of(
            "set-cookie",
            "date",
            "connection",
            "keep-alive",
            "transfer-encoding",
            "trailer",
            "upgrade",
            "te",
            "content-length",
            "proxy-authenticate",
            "www-authenticate",
            "authorization",
            "retry-after",
            "idempotent-replayed",
            "idempotency-refusal");

    private KeptHeaders() {}

    /** @throws IllegalArgumentException if {@code name} is not a header name, or if the header must not be replayed */
    static void check(String name) {
        if (!name.matches("[!#$%&'*+.^_`|~0-9A-Za-z-]+")) {
            throw new IllegalArgumentException(
                    "keepHeaders expects header names, and one of these is not a header name; pass names such as X-Request-Id");
        }
        if (NEVER.contains(name.toLowerCase(Locale.ROOT))) {
            throw new IllegalArgumentException(
                    "keepHeaders cannot keep '" + name + "': it belongs to one connection, one caller or one moment");
        }
    }
}
