package io.idempotence;

import java.util.regex.Pattern;

/** The form of the names that precede an ID. */
final class NamePrefix {
    private static final Pattern VALID = Pattern.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,63}");

    private NamePrefix() {}

    static String checked(String what, String name) {
        if (!VALID.matcher(name).matches()) {
            throw new IllegalArgumentException(
                    what + " must be 1 to 64 characters, a letter or digit first, then letters,"
                            + " digits, '.', '_' or '-'; got " + name.length() + " characters not of that form");
        }
        return name;
    }
}
