package io.idempotence.client.internal.http;

import java.util.Locale;

/** Whom an ID is for: scheme, host and port of the URL that a call is made to. Redirects to another one must not tell it. */
public record Origin(String scheme, String host, int port) {
    /** @param port negative if the URL names none */
    public Origin {
        scheme = scheme.toLowerCase(Locale.ROOT);
        host = host.toLowerCase(Locale.ROOT);
        if (port < 0) {
            port = scheme.equals("https") ? 443 : 80;
        }
    }
}
