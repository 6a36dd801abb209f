package io.idempotence;

import java.util.Objects;

/**
 * The name of one logical call. Every attempt to carry out that call sends the same ID (promise P1).
 *
 * <p>An ID is 1 to 255 printable ASCII characters. It is opaque: neither side reads meaning into it. Two IDs are equal
 * when their characters are. By default the header codec also refuses the space, see
 * {@link io.idempotence.http.IdempotencyKeyHeader}.
 *
 * @param value the characters
 */
public record IdempotenceId(String value) {
    /** The greatest number of characters an ID can have: 255. */
    public static final int MAX_LENGTH = 255;

    /**
     * Checks the characters.
     *
     * @throws IllegalArgumentException if {@code value} is empty, longer than 255 characters, or has a character that is
     *     not printable ASCII; the message names the position, never the value
     */
    public IdempotenceId {
        Objects.requireNonNull(value, "value");
        int length = value.length();
        if (length == 0 || length > MAX_LENGTH) {
            throw new IllegalArgumentException(
                    "an idempotence ID has 1 to " + MAX_LENGTH + " characters, this one has " + length);
        }
        for (int i = 0; i < length; i++) {
            char c = value.charAt(i);
            if (c < ' ' || c > '~') {
                throw new IllegalArgumentException(String.format(
                        "an idempotence ID is printable ASCII (0x20 to 0x7E), character %d of this one is 0x%02X",
                        i + 1, (int) c));
            }
        }
    }

    /**
     * An ID of these characters.
     *
     * @param value the characters
     * @return the ID
     * @throws IllegalArgumentException as the constructor does
     */
    public static IdempotenceId of(String value) {
        return new IdempotenceId(value);
    }

    /** The characters themselves, as a log pattern or a database column would show them. */
    @Override
    public String toString() {
        return value;
    }
}
