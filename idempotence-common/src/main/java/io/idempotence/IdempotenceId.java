package io.idempotence;

import java.io.Serializable;
import java.util.Objects;

/**
 * The identifier of one logical call. Every attempt of that call sends the same ID (promise P1).
 *
 * <p>An ID has 1 to 255 printable ASCII characters. It is opaque: neither side interprets it. Two IDs are equal if their characters are. By
 * default the header codec also refuses the space, see {@link io.idempotence.http.IdempotencyKeyHeader}.
 *
 * @param value the characters
 */
public record IdempotenceId(String value) implements Serializable {
    /** The greatest length of an ID: 255 characters. */
    public static final int MAX_LENGTH = 255;

    /**
     * Checks the characters.
     *
     * @throws IllegalArgumentException if {@code value} is empty, longer than 255 characters, or has a character that is not printable
     *     ASCII; the message contains the position, never the value
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
     * An ID with the given characters.
     *
     * @param value the characters
     * @throws IllegalArgumentException if {@code value} is empty, longer than 255 characters, or has a character that is not printable
     *     ASCII
     */
    public static IdempotenceId of(String value) {
        return new IdempotenceId(value);
    }

    /** The characters, without any decoration. */
    @Override
    public String toString() {
        return value;
    }
}
