package io.idempotence.server.servlet;

import jakarta.servlet.http.HttpServletResponse;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.Charset;

/**
 * The body of a response, as far as it is held in memory: bytes, or text that is not encoded yet. A body that exceeds the cap, or the
 * memory that is left, is not held.
 */
final class BodyBuffer {
    /**
     * How many times a byte is in memory while its response is recorded: in a buffer that grows by doubling, encoded, and in the record.
     */
    private static final int COPIES = 6;

    private final int cap;
    private final MemoryBudget.Share memory;
    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream(256);
    private final StringBuilder chars = new StringBuilder();
    private boolean oversize;

    BodyBuffer(int cap, MemoryBudget.Share memory) {
        this.cap = cap;
        this.memory = memory;
    }

    boolean oversize() {
        return oversize;
    }

    boolean isEmpty() {
        return bytes.size() == 0 && chars.length() == 0;
    }

    /** Reserves memory for more bytes or characters. Returns false if they do not fit. */
    boolean reserve(int more) {
        return bytes.size() + chars.length() <= cap - more && memory.reserve((long) COPIES * more);
    }

    /** Drops what is held, and holds nothing more. */
    void overflow() {
        oversize = true;
        clear();
    }

    void clear() {
        bytes.reset();
        chars.setLength(0);
    }

    void write(byte[] buffer, int offset, int length) {
        if (!oversize) {
            bytes.write(buffer, offset, length);
        }
    }

    void write(char[] buffer, int offset, int length) {
        if (!oversize) {
            chars.append(buffer, offset, length);
        }
    }

    byte[] bytes() {
        return bytes.toByteArray();
    }

    /** Returns the text as bytes. If they exceed the cap, the body is oversize. */
    byte[] encoded(String encoding) {
        byte[] encoded = chars.toString().getBytes(Charset.forName(encoding));
        oversize |= encoded.length > cap;
        return encoded;
    }

    /** @param asText whether the handler uses the writer */
    void writeTo(HttpServletResponse target, boolean asText) throws IOException {
        if (asText) {
            target.getWriter().append(chars);
        } else if (bytes.size() > 0) {
            bytes.writeTo(target.getOutputStream());
        }
    }
}
