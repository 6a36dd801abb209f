package io.idempotence.http;

import io.idempotence.IdempotenceId;
import java.util.List;
import java.util.Optional;

/**
 * The grammar of the field {@code Idempotency-Key}. It parses and formats IDs.
 *
 * <p>The value is a Structured Field Item of type String (RFC 9651, section 3.3.3), whose parameters are checked and ignored. Unless {@link
 * #strict()}, it may also be a bare value {@code [A-Za-z0-9][A-Za-z0-9._~:+/=-]{0,254}}. Both spellings of the same characters are the same
 * ID. A value that begins with a quote is parsed strictly. A field that cannot be parsed is an error, because ignoring it would run the
 * request unprotected.
 *
 * <p>Defaults: bare values accepted, 1 to 255 characters, no space. Immutable and thread-safe.
 */
public final class IdempotencyKeyHeader {
    private static final IdempotencyKeyHeader STANDARD =
            new IdempotencyKeyHeader(true, 1, IdempotenceId.MAX_LENGTH, false);
    /** The longest line that is parsed: twice the longest ID, because each character may be escaped, and room for parameters. */
    private static final int MAX_LINE = 1024;

    private final boolean bareAccepted;
    private final int minLength;
    private final int maxLength;
    private final boolean spaceAccepted;

    private IdempotencyKeyHeader(boolean bareAccepted, int minLength, int maxLength, boolean spaceAccepted) {
        this.bareAccepted = bareAccepted;
        this.minLength = minLength;
        this.maxLength = maxLength;
        this.spaceAccepted = spaceAccepted;
    }

    /** The spelling of an ID on the wire. */
    public enum Style {
        /** {@code "8e03978e-…"}: a Structured Field string, as in the draft. */
        QUOTED,
        /** {@code 8e03978e-…}: what most services from before the draft expect. */
        BARE
    }

    /** {@return the default grammar of both halves: bare values accepted, 1 to 255 characters, no space} */
    public static IdempotencyKeyHeader standard() {
        return STANDARD;
    }

    /** This grammar without bare values. */
    public IdempotencyKeyHeader strict() {
        return new IdempotencyKeyHeader(false, minLength, maxLength, spaceAccepted);
    }

    /**
     * This grammar with other limits on the number of characters of an ID.
     *
     * @param min at least 1
     * @param max at least {@code min}, at most 255
     * @throws IllegalArgumentException if the limits are not of that form
     */
    public IdempotencyKeyHeader length(int min, int max) {
        if (min < 1 || max < min || max > IdempotenceId.MAX_LENGTH) {
            throw new IllegalArgumentException("the length of an ID must lie within 1 to " + IdempotenceId.MAX_LENGTH
                    + " and min must not exceed max; got " + min + " to " + max);
        }
        return new IdempotencyKeyHeader(bareAccepted, min, max, spaceAccepted);
    }

    /** This grammar with the space accepted inside quoted IDs. */
    public IdempotencyKeyHeader acceptSpace() {
        return new IdempotencyKeyHeader(bareAccepted, minLength, maxLength, true);
    }

    /**
     * Parses the ID from all lines of the field.
     *
     * @param lines the value of every field line, in order
     * @return the ID, or empty if there is no line
     * @throws InvalidIdempotencyKeyException if there is more than one line, even an equal one, or the line does not conform to the grammar
     */
    public Optional<IdempotenceId> parse(List<String> lines) {
        if (lines.isEmpty()) {
            return Optional.empty();
        }
        if (lines.size() > 1) {
            throw new InvalidIdempotencyKeyException("the field occurs on " + lines.size() + " lines; send it once");
        }
        String line = lines.get(0);
        if (line.length() > MAX_LINE) {
            throw new InvalidIdempotencyKeyException(
                    "the field has " + line.length() + " characters, at most " + MAX_LINE + " are read");
        }
        int from = 0;
        int to = line.length();
        while (from < to && isBlank(line.charAt(from))) {
            from++;
        }
        while (to > from && isBlank(line.charAt(to - 1))) {
            to--;
        }
        if (from == to) {
            throw new InvalidIdempotencyKeyException("the field is empty");
        }
        String value = line.substring(from, to);
        String id = value.charAt(0) == '"' ? StructuredString.parse(value) : bare(value);
        return Optional.of(checked(id));
    }

    /**
     * Formats an ID.
     *
     * @return the value of the field
     * @throws IllegalArgumentException if {@code id} is outside this grammar, or has a character that a bare value cannot have
     */
    public String format(IdempotenceId id, Style style) {
        String value = id.value();
        try {
            checked(value);
        } catch (InvalidIdempotencyKeyException e) {
            throw new IllegalArgumentException(e.getMessage(), e);
        }
        if (style == Style.QUOTED) {
            return StructuredString.format(value);
        }
        if (!isBare(value)) {
            throw new IllegalArgumentException(
                    "the ID has a character that a bare Idempotency-Key cannot have; use the quoted style");
        }
        return value;
    }

    private String bare(String value) {
        if (!bareAccepted) {
            throw new InvalidIdempotencyKeyException("the value must be a quoted string (RFC 9651, section 3.3.3)");
        }
        if (!isBare(value)) {
            throw new InvalidIdempotencyKeyException(
                    "a value without quotes begins with a letter or digit and has only letters, digits and . _ ~ : + / = -");
        }
        return value;
    }

    private IdempotenceId checked(String id) {
        if (id.length() < minLength || id.length() > maxLength) {
            throw new InvalidIdempotencyKeyException(
                    "the ID has " + id.length() + " characters, allowed are " + minLength + " to " + maxLength);
        }
        if (!spaceAccepted && id.indexOf(' ') >= 0) {
            throw new InvalidIdempotencyKeyException("the ID has a space, allowed are visible ASCII characters");
        }
        return new IdempotenceId(id);
    }

    /** A loop and not a pattern, because it runs for every request. */
    private static boolean isBare(String value) {
        for (int i = 0; i < value.length(); i++) {
            char c = value.charAt(i);
            boolean alphanumeric = c < 128 && Character.isLetterOrDigit(c);
            if (!alphanumeric && (i == 0 || "._~:+/=-".indexOf(c) < 0)) {
                return false;
            }
        }
        return !value.isEmpty();
    }

    private static boolean isBlank(char c) {
        return c == ' ' || c == '\t';
    }
}
