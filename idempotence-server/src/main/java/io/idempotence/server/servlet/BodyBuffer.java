package io.idempotence.server.servlet;

import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.Charset;
import java.util.Arrays;

/**
 * The body of a response, as far as it is held in memory: bytes, or text that is not encoded yet. A body that exceeds the cap, or the
 * memory that is left, is not held.
 */
final class BodyBuffer {
    /**
     * How many times a byte may be in memory while its response is recorded: in a buffer that grows by doubling, encoded, and in the record.
     */
    private static final int COPIES = 6;

    /** How many bytes or characters memory is reserved for at a time, because a handler may write them one by one. */
    private static final int STEP = 256;

    private static final byte[] NOTHING = {};

    private final int cap;
    private final MemoryBudget.Share memory;
    private int reserved;
    private byte[] bytes = NOTHING;
    private int size;
    /** Without capacity until the handler writes text. */
    private final StringBuilder chars = new StringBuilder(0);

    private boolean oversize;

    BodyBuffer(int cap, MemoryBudget.Share memory) {
        this.cap = cap;
        this.memory = memory;
    }

    boolean oversize() {
        return oversize;
    }

    /** How many bytes and characters are held. */
    int length() {
        return size + chars.length();
    }

    boolean isEmpty() {
        return length() == 0;
    }

    /** Reserves memory for more bytes or characters. Returns false if they do not fit. */
    boolean reserve(int more) {
        if (length() > cap - more) {
            return false;
        }
        int missing = length() + more - reserved;
        return missing <= 0 || reserved(Math.max(missing, STEP)) || reserved(missing);
    }

    private boolean reserved(int more) {
        if (!memory.reserve((long) COPIES * more)) {
            return false;
        }
        reserved += more;
        return true;
    }

    /** Drops what is held, and holds nothing more. */
    void overflow() {
        oversize = true;
        clear();
        bytes = NOTHING;
    }

    void clear() {
        size = 0;
        chars.setLength(0);
    }

    void write(int b) {
        if (!oversize) {
            makeRoom(1);
            bytes[size++] = (byte) b;
        }
    }

    void write(byte[] buffer, int offset, int length) {
        if (!oversize) {
            makeRoom(length);
            System.arraycopy(buffer, offset, bytes, size, length);
            size += length;
        }
    }

    private void makeRoom(int more) {
        if (bytes.length - size < more) {
            int doubled = (int) Math.min(2L * bytes.length, cap);
            bytes = Arrays.copyOf(bytes, Math.max(size + more, Math.max(doubled, STEP)));
        }
    }

    void write(char[] buffer, int offset, int length) {
        if (!oversize) {
            chars.append(buffer, offset, length);
        }
    }

    void write(String text, int offset, int length) {
        if (!oversize) {
            chars.append(text, offset, offset + length);
        }
    }

    /** Returns the bytes without copying them. They are valid until more is written. */
    ByteBuffer bytes() {
        return ByteBuffer.wrap(bytes, 0, size);
    }

    /** Returns the text as bytes. If they exceed the cap, the body is oversize. */
    ByteBuffer encoded(String encoding) {
        ByteBuffer encoded = ByteBuffer.wrap(chars.toString().getBytes(Charset.forName(encoding)));
        oversize |= encoded.remaining() > cap;
        return encoded;
    }

    /** @param asText whether the handler uses the writer */
    void writeTo(HttpServletResponse target, boolean asText) throws IOException {
        if (asText) {
            target.getWriter().append(chars);
        } else if (size > 0) {
            target.getOutputStream().write(bytes, 0, size);
        }
    }
}
