package io.idempotence.internal;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;

/** SHA-256 over fields, each with its length in front, so that no field can run into the next. Not thread-safe. */
public final class FieldDigest {
    /** Never updated. */
    private static final MessageDigest EMPTY = newSha256();

    private final MessageDigest digest = sha256();
    private final byte[] length = new byte[Long.BYTES];

    /**
     * Adds a text as UTF-8.
     *
     * @param field the text
     * @return this
     */
    public FieldDigest add(String field) {
        return add(field.getBytes(StandardCharsets.UTF_8));
    }

    /**
     * Adds bytes.
     *
     * @param field the bytes
     * @return this
     */
    public FieldDigest add(byte[] field) {
        return length(field.length).part(field, 0, field.length);
    }

    /**
     * Begins a field whose bytes follow in parts.
     *
     * @param length how many bytes will follow
     * @return this
     */
    public FieldDigest length(long length) {
        ByteBuffer.wrap(this.length).putLong(length);
        digest.update(this.length);
        return this;
    }

    /**
     * Adds a part of a field that {@link #length} has begun.
     *
     * @param bytes where the part is
     * @param offset its first byte
     * @param count how many bytes
     * @return this
     */
    public FieldDigest part(byte[] bytes, int offset, int count) {
        digest.update(bytes, offset, count);
        return this;
    }

    /**
     * The digest; this object is then empty again.
     *
     * @return 32 bytes
     */
    public byte[] digest() {
        return digest.digest();
    }

    /** A copy: the look for a provider would cost more than the digest of a short request. */
    private static MessageDigest sha256() {
        try {
            return (MessageDigest) EMPTY.clone();
        } catch (CloneNotSupportedException e) {
            return newSha256();
        }
    }

    private static MessageDigest newSha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java platform has SHA-256", e);
        }
    }
}
