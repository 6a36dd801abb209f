package io.idempotence.server.servlet;

import java.util.regex.Pattern;

/** The grammar of header names (RFC 9110, section 5.6.2). */
final class HeaderNames {
    private static final Pattern TOKEN = Pattern.compile("[!#$%&'*+.^_`|~0-9A-Za-z-]+");

    private HeaderNames() {}

    static boolean isValid(String name) {
        return TOKEN.matcher(name).matches();
    }
}
