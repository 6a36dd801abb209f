package io.idempotence.internal;

/** The form of the names of services, applications and operations. */
public final class Names {
    private static final int MAX_LENGTH = 64;

    private Names() {}

    /**
     * Checks a name.
     *
     * @param what what the name is of, for the message
     * @param name 1 to 64 characters: a letter or digit, then letters, digits, dot, underscore, hyphen
     * @return {@code name}
     * @throws IllegalArgumentException if it is not of that form
     */
    public static String checked(String what, String name) {
        if (!isOfForm(name)) {
            throw new IllegalArgumentException(
                    what + " must be 1 to 64 characters, a letter or digit first, then letters,"
                            + " digits, '.', '_' or '-', such as 'payments'; got " + name.length()
                            + " characters not of that form");
        }
        return name;
    }

    /** A loop and not a pattern, because it runs for every key. */
    private static boolean isOfForm(String name) {
        if (name.isEmpty() || name.length() > MAX_LENGTH) {
            return false;
        }
        for (int i = 0; i < name.length(); i++) {
            char c = name.charAt(i);
            boolean alphanumeric = c < 128 && Character.isLetterOrDigit(c);
            if (!alphanumeric && (i == 0 || (c != '.' && c != '_' && c != '-'))) {
                return false;
            }
        }
        return true;
    }
}
