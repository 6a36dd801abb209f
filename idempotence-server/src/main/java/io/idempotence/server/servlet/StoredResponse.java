package io.idempotence.server.servlet;

import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.CorruptRecordException;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A response in its stored form: compact, without JSON and without Java serialization.
 *
 * <p>Layout: kind (1 byte), form (1), status (2), number of headers (1), the encoding if the form has the bit for text (length in 1 byte,
 * name), each header as name code (1; 0: length and name follow) and value (length in 2 bytes, UTF-8); the body is the rest.
 *
 * @param form how the handler gave it
 * @param output how the handler wrote the body
 * @param headers the kept headers in order
 * @param body the body, from the position to the limit of a buffer with an array, which must not be changed; for {@link Form#ERROR} the
 *     message as UTF-8
 */
record StoredResponse(Form form, BodyOutput output, int status, List<StoredHeader> headers, ByteBuffer body) {
    private static final Logger LOG = LoggerFactory.getLogger(IdempotenceFilter.class);

    /** The first byte of a stored result, which defines the format of the rest. The other kinds are those of {@code execute}. */
    private static final byte KIND = 1;

    /** Names that cost one byte. Append only: the position is the code. */
    private static final List<String> NAMES = List.of(
            "Content-Type",
            "Location",
            "Content-Language",
            "Content-Disposition",
            "Content-Location",
            "ETag",
            "Last-Modified",
            "Link",
            "Cache-Control",
            "Content-Encoding");

    /** Kind, form, status and number of headers. */
    private static final int FIXED = 5;

    /** The bits of the form byte for the form. */
    private static final int FORM = 0x0F;

    /** The bit of the form byte for a body that was written with the writer. */
    private static final int TEXT = 0x10;

    /** The bit of the form byte for a writer or stream that the handler flushed or closed. */
    private static final int FLUSHED = 0x20;

    /** The bit of the form byte for a writer or stream that the handler closed. */
    private static final int CLOSED = 0x40;

    /** The bit of the form byte for a length that the handler declared. */
    private static final int LENGTH = 0x80;

    private static final int MAX_HEADERS = 255;
    private static final int MAX_NAME = 255;
    private static final int MAX_VALUE = 0xFFFF;

    /** The way in which a handler gave its response. It is replayed in the same way, so that the container completes it again. */
    enum Form {
        /** Status, headers and body were written. */
        WRITTEN(0),
        /** {@code sendError} was called, and no error page of the application was seen. */
        ERROR(1),
        /** {@code sendRedirect} was called. */
        REDIRECT(2),
        /** {@code sendRedirect} was called with a URL that the container had encoded. The session ID in it is not stored. */
        ENCODED_REDIRECT(3);

        private final int code;

        Form(int code) {
            this.code = code;
        }

        private static Form ofCode(int code) {
            for (Form form : values()) {
                if (form.code == code) {
                    return form;
                }
            }
            throw new CorruptRecordException("a stored response has form " + code);
        }
    }

    record StoredHeader(String name, String value) {}

    /**
     * How the handler wrote the body.
     *
     * @param encoding the name of the encoding in which a body of the writer is stored; null if the handler used the stream
     * @param flushed whether the handler flushed or closed the writer or stream
     * @param closed whether the handler closed it
     * @param lengthDeclared whether the handler declared the length of the body
     */
    record BodyOutput(@Nullable String encoding, boolean flushed, boolean closed, boolean lengthDeclared) {
        private static BodyOutput of(int bits, @Nullable String encoding) {
            return new BodyOutput(encoding, (bits & FLUSHED) != 0, (bits & CLOSED) != 0, (bits & LENGTH) != 0);
        }

        /**
         * Flushes or closes the stream or writer of a response as the handler did, because one of a filter in front may act only then.
         *
         * @param asText whether the body is written with the writer
         */
        void endOn(HttpServletResponse response, boolean asText) throws IOException {
            if (flushed) {
                var end = asText ? response.getWriter() : response.getOutputStream();
                if (closed) {
                    end.close();
                } else {
                    end.flush();
                }
            }
        }

        private int bits() {
            return (encoding == null ? 0 : TEXT)
                    | (flushed ? FLUSHED : 0)
                    | (closed ? CLOSED : 0)
                    | (lengthDeclared ? LENGTH : 0);
        }

        private byte @Nullable [] name() {
            return encoding == null ? null : encoding.getBytes(StandardCharsets.US_ASCII);
        }
    }

    /** A response whose body is a whole array, and was written to the stream without a flush, a close or a length. */
    StoredResponse(Form form, int status, List<StoredHeader> headers, byte[] body) {
        this(form, new BodyOutput(null, false, false, false), status, headers, ByteBuffer.wrap(body));
    }

    StoredResponse {
        if (status < 100 || status > 999) {
            throw new IllegalArgumentException("status must have three digits, got " + status);
        }
        headers = List.copyOf(headers);
    }

    /** {@return a view with its own position, so that reading it does not consume the body} */
    @Override
    public ByteBuffer body() {
        return body.duplicate();
    }

    /** Returns this response as the result of an execution; {@link ClaimResult#noResult} if the headers do not fit the format. */
    byte[] toBytes() {
        if (headers.size() > MAX_HEADERS) {
            return tooLarge("more than " + MAX_HEADERS + " headers");
        }
        byte[] encoding = output.name();
        int length = FIXED + (encoding == null ? 0 : Byte.BYTES + encoding.length) + body.remaining();
        List<EncodedHeader> encoded = new ArrayList<>(headers.size());
        for (StoredHeader header : headers) {
            EncodedHeader one = EncodedHeader.of(header);
            if (!one.fits()) {
                return tooLarge("a header longer than " + MAX_VALUE + " bytes, or with a name longer than " + MAX_NAME);
            }
            encoded.add(one);
            length += one.length();
        }
        ByteBuffer out = ByteBuffer.allocate(length)
                .put(KIND)
                .put((byte) (form.code | output.bits()))
                .putShort((short) status)
                .put((byte) encoded.size());
        if (encoding != null) {
            out.put((byte) encoding.length).put(encoding);
        }
        encoded.forEach(header -> header.putInto(out));
        return out.put(body()).array();
    }

    private static byte[] tooLarge(String what) {
        LOG.warn("A response has {}; it is not stored, and duplicates are refused as result-unavailable", what);
        return ClaimResult.noResult();
    }

    /** @param name empty if it has a code */
    private record EncodedHeader(int code, byte[] name, byte[] value) {
        private static final byte[] CODED = {};

        static EncodedHeader of(StoredHeader header) {
            int code = NAMES.indexOf(header.name()) + 1;
            byte[] name = code == 0 ? header.name().getBytes(StandardCharsets.UTF_8) : CODED;
            return new EncodedHeader(code, name, header.value().getBytes(StandardCharsets.UTF_8));
        }

        boolean fits() {
            return name.length <= MAX_NAME && value.length <= MAX_VALUE;
        }

        int length() {
            return Byte.BYTES + (code == 0 ? Byte.BYTES + name.length : 0) + Short.BYTES + value.length;
        }

        void putInto(ByteBuffer out) {
            out.put((byte) code);
            if (code == 0) {
                out.put((byte) name.length).put(name);
            }
            out.putShort((short) value.length).put(value);
        }
    }

    /**
     * Reads what {@link #toBytes} wrote. The body is a view of {@code bytes}.
     *
     * @throws CorruptRecordException if {@code bytes} are not a response
     */
    static StoredResponse fromBytes(byte[] bytes) {
        if (bytes.length == 0) {
            throw new CorruptRecordException("a stored result is empty");
        }
        if (bytes[0] != KIND) {
            throw new CorruptRecordException("a stored result is of kind " + bytes[0] + ", not an HTTP response");
        }
        try {
            ByteBuffer in = ByteBuffer.wrap(bytes, 1, bytes.length - 1);
            int bits = in.get();
            Form form = Form.ofCode(bits & FORM);
            int status = in.getShort();
            int count = Byte.toUnsignedInt(in.get());
            BodyOutput output = BodyOutput.of(bits, (bits & TEXT) == 0 ? null : encoding(in));
            List<StoredHeader> headers = new ArrayList<>(count);
            for (int i = 0; i < count; i++) {
                int code = in.get();
                if (code < 0 || code > NAMES.size()) {
                    throw new CorruptRecordException("a stored response has a header of code " + code);
                }
                String name = code == 0 ? text(in, Byte.toUnsignedInt(in.get())) : NAMES.get(code - 1);
                headers.add(new StoredHeader(name, text(in, Short.toUnsignedInt(in.getShort()))));
            }
            if (status < 100 || status > 999) {
                throw new CorruptRecordException("a stored response has status " + status);
            }
            return new StoredResponse(form, output, status, headers, in);
        } catch (BufferUnderflowException e) {
            throw new CorruptRecordException("a stored response is truncated: " + bytes.length + " bytes");
        }
    }

    /** Reads what {@link #toBytes} wrote; null if {@code bytes} are not a response. */
    static @Nullable StoredResponse ifReadable(byte[] bytes) {
        try {
            return fromBytes(bytes);
        } catch (CorruptRecordException e) {
            return null;
        }
    }

    private static String encoding(ByteBuffer in) {
        String name = text(in, Byte.toUnsignedInt(in.get()));
        try {
            Charset.forName(name);
            return name;
        } catch (IllegalArgumentException e) {
            throw new CorruptRecordException("a stored response is in an unknown encoding");
        }
    }

    private static String text(ByteBuffer in, int length) {
        byte[] bytes = new byte[length];
        in.get(bytes);
        return new String(bytes, StandardCharsets.UTF_8);
    }
}
