package io.idempotence.server.jdbc;

import java.util.regex.Pattern;

/** The name of a table that is safe in a statement: an identifier, or two with a dot between them. */
record TableName(String value) {
    private static final Pattern VALID =
            Pattern.compile("(?:[A-Za-z_][A-Za-z0-9_]{0,47}\\.)?[A-Za-z_][A-Za-z0-9_]{0,47}");

    TableName {
        if (!VALID.matcher(value).matches()) {
            throw new IllegalArgumentException(
                    "a table's name must be 1 to 48 letters, digits or underscores, no digit first, at most one schema and a dot"
                            + " before it; got " + value.length() + " characters");
        }
    }

    /** The name without its schema. */
    String local() {
        return value.substring(value.indexOf('.') + 1);
    }

    @Override
    public String toString() {
        return value;
    }
}
