package io.idempotence.server.storage;

import io.idempotence.internal.FieldDigest;
import java.util.Arrays;
import java.util.HexFormat;

/**
 * The content of a request as 32 bytes: the SHA-256 over everything that makes two requests equal. A request with another fingerprint under
 * the same ID neither runs nor replays (promise P5).
 *
 * <p>Immutable.
 */
public final class Fingerprint {
    /** The number of bytes of {@link #toBytes()}. */
    public static final int BYTES = 32;

    /** The fingerprint of calls that have only an ID: 32 zero bytes. */
    public static final Fingerprint NONE = new Fingerprint(new byte[BYTES]);

    private final byte[] bytes;

    private Fingerprint(byte[] bytes) {
        this.bytes = bytes;
    }

    /**
     * A fingerprint with the given bytes.
     *
     * @param bytes 32 bytes; copied
     * @throws IllegalArgumentException if there are not 32
     */
    public static Fingerprint of(byte[] bytes) {
        if (bytes.length != BYTES) {
            throw new IllegalArgumentException("a fingerprint has " + BYTES + " bytes, got " + bytes.length);
        }
        return new Fingerprint(bytes.clone());
    }

    /**
     * The fingerprint of a message, or of other content.
     *
     * @param fields the parts that make two messages equal, each in its place; not changed
     * @return the SHA-256 over the fields, each with its length in front
     */
    public static Fingerprint ofContent(byte[]... fields) {
        FieldDigest digest = new FieldDigest();
        for (byte[] field : fields) {
            digest.add(field);
        }
        return new Fingerprint(digest.digest());
    }

    /** {@return the fingerprint as stored, a new array of 32 bytes} */
    public byte[] toBytes() {
        return bytes.clone();
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Fingerprint that && Arrays.equals(bytes, that.bytes);
    }

    @Override
    public int hashCode() {
        return Arrays.hashCode(bytes);
    }

    @Override
    public String toString() {
        return "Fingerprint[" + HexFormat.of().formatHex(bytes, 0, 4) + "…]";
    }
}
