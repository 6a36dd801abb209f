package io.idempotence.client.internal.http;

import java.util.Locale;

/** The origin of a call's URL: scheme, host and port. The ID is only for this origin: redirects to another one must not disclose it. */
public record HttpOrigin(String scheme, String host, int port) {
    /** @param port negative if the URL contains none */
    public HttpOrigin {
        scheme = scheme.toLowerCase(Locale.ROOT);
        host = host.toLowerCase(Locale.ROOT);
        if (port < 0) {
            port = usualPort(scheme);
        }
    }

    private static int usualPort(String scheme) {
        return scheme.equals("https") ? 443 : 80;
    }

    /** The host, with its port if that is not the usual one of the scheme. */
    public String authority() {
        return port == usualPort(scheme) ? host : host + ":" + port;
    }

    @Override
    public String toString() {
        return scheme + "://" + host + ":" + port;
    }
}
