package io.idempotence.internal;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/**
 * A SHA-256 over fields, each with its length in front, so that no two lists of texts have the same input. A number has no length: add one
 * only where every list has it. What adds returns this object. Not thread-safe.
 */
public final class FieldDigest {
    private static final int GATHERED = 128;
    /** The length of an absent field, which no present one has. */
    private static final long ABSENT = -1;

    /** A template to clone. Never updated. */
    private static final MessageDigest EMPTY = newSha256();

    /** Inputs that nobody uses, each empty. Taken by the first user that looks, and given back after a digest was computed. */
    private static final AtomicReferenceArray<@Nullable Input> IDLE = new AtomicReferenceArray<>(16);

    /** The input of this object alone; null while there is none. */
    private @Nullable Input input;

    /** A digest, and a buffer for short fields in front of it, because each call of the digest has a fixed cost. */
    private static final class Input {
        private final MessageDigest sha256 = newClone();
        private final ByteBuffer gathered = ByteBuffer.allocate(GATHERED);

        /** The buffer, with room for some bytes, unless they are more than it ever has. */
        ByteBuffer roomFor(int bytes) {
            if (gathered.remaining() < bytes) {
                flush();
            }
            return gathered;
        }

        private void flush() {
            sha256.update(gathered.array(), 0, gathered.position());
            gathered.clear();
        }

        byte[] digest() {
            flush();
            return sha256.digest();
        }
    }

    /** Adds a text as UTF-8. */
    public FieldDigest add(String field) {
        return isShortAscii(field) ? addAscii(field) : add(field.getBytes(StandardCharsets.UTF_8));
    }

    private static boolean isShortAscii(String field) {
        if (field.length() > GATHERED) {
            return false;
        }
        for (int i = 0; i < field.length(); i++) {
            if (field.charAt(i) >= 0x80) {
                return false;
            }
        }
        return true;
    }

    /** Adds a text whose characters are its bytes, without an array of its own: most fields are of this kind. */
    private FieldDigest addAscii(String field) {
        length(field.length());
        ByteBuffer gathered = input().roomFor(field.length());
        for (int i = 0; i < field.length(); i++) {
            gathered.put((byte) field.charAt(i));
        }
        return this;
    }

    /**
     * Adds a text that may be absent. An absent text differs from every present one.
     *
     * @param field the text; null for none
     */
    public FieldDigest addOrAbsent(@Nullable String field) {
        return field == null ? length(ABSENT) : add(field);
    }

    /** Adds a number. */
    public FieldDigest add(long number) {
        return length(number);
    }

    /** Adds bytes. */
    public FieldDigest add(byte[] field) {
        return length(field.length).part(field, 0, field.length);
    }

    /**
     * Begins a field whose bytes follow in parts.
     *
     * @param length how many bytes will follow
     */
    public FieldDigest length(long length) {
        input().roomFor(Long.BYTES).putLong(length);
        return this;
    }

    /**
     * Adds a part of a field that {@link #length} began.
     *
     * @param bytes contains the part
     * @param offset its first byte
     * @param count how many bytes
     */
    public FieldDigest part(byte[] bytes, int offset, int count) {
        Input own = input();
        ByteBuffer gathered = own.roomFor(count);
        if (gathered.remaining() < count) {
            own.sha256.update(bytes, offset, count);
        } else {
            gathered.put(bytes, offset, count);
        }
        return this;
    }

    /**
     * Computes the digest, and resets this object.
     *
     * @return 32 bytes
     */
    public byte[] digest() {
        Input complete = input();
        input = null;
        byte[] digest = complete.digest();
        IDLE.set(slot(), complete);
        return digest;
    }

    private Input input() {
        Input own = input;
        if (own == null) {
            own = IDLE.getAndSet(slot(), null);
            if (own == null) {
                own = new Input();
            }
            input = own;
        }
        return own;
    }

    private static int slot() {
        return (int) Thread.currentThread().getId() & (IDLE.length() - 1);
    }

    /** A clone: looking up a provider would cost more than digesting a short request. */
    private static MessageDigest newClone() {
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
