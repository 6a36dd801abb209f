package io.idempotence.server.servlet;

import io.idempotence.server.storage.ClaimResult;
import io.idempotence.server.storage.CorruptRecordException;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * A response in its stored form: compact, without JSON and without Java serialization.
 *
 * <p>Layout: kind (1 byte), form (1), status (2), number of headers (1), each header as name code (1; 0: length and name follow) and value
 * (length in 2 bytes, UTF-8); the body is the rest.
 *
 * @param form how the handler gave it
 * @param headers the kept headers in order
 * @param body the body; for {@link Form#ERROR} the message as UTF-8. Must not be changed
 */
record StoredResponse(Form form, int status, List<Header> headers, byte[] body) {
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

    private static final int MAX_HEADERS = 255;
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

    record Header(String name, String value) {}

    StoredResponse {
        if (status < 100 || status > 999) {
            throw new IllegalArgumentException("status must have three digits, got " + status);
        }
        headers = List.copyOf(headers);
    }

    /** The result of an execution whose response is not stored. Later attempts are refused as result-unavailable. */
    static byte[] unavailable() {
        return ClaimResult.noResult();
    }

    /** Returns this response as the result of an execution; {@link #unavailable()} if the headers do not fit the format. */
    byte[] toBytes() {
        if (headers.size() > MAX_HEADERS) {
            return unavailable();
        }
        ByteArrayOutputStream bytes = new ByteArrayOutputStream(64 + body.length);
        try (DataOutputStream out = new DataOutputStream(bytes)) {
            out.writeByte(KIND);
            out.writeByte(form.code);
            out.writeShort(status);
            out.writeByte(headers.size());
            for (Header header : headers) {
                int code = NAMES.indexOf(header.name()) + 1;
                out.writeByte(code);
                if (code == 0) {
                    byte[] name = header.name().getBytes(StandardCharsets.UTF_8);
                    if (name.length > 255) {
                        return unavailable();
                    }
                    out.writeByte(name.length);
                    out.write(name);
                }
                byte[] value = header.value().getBytes(StandardCharsets.UTF_8);
                if (value.length > MAX_VALUE) {
                    return unavailable();
                }
                out.writeShort(value.length);
                out.write(value);
            }
            out.write(body);
        } catch (IOException e) {
            throw new UncheckedIOException("writing to memory failed", e);
        }
        return bytes.toByteArray();
    }

    /**
     * Reads what {@link #toBytes} wrote.
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
        try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes))) {
            in.readByte();
            Form form = Form.ofCode(in.readUnsignedByte());
            int status = in.readUnsignedShort();
            int count = in.readUnsignedByte();
            List<Header> headers = new ArrayList<>(count);
            for (int i = 0; i < count; i++) {
                int code = in.readUnsignedByte();
                if (code > NAMES.size()) {
                    throw new CorruptRecordException("a stored response has a header of code " + code);
                }
                String name = code == 0 ? text(in, in.readUnsignedByte()) : NAMES.get(code - 1);
                headers.add(new Header(name, text(in, in.readUnsignedShort())));
            }
            if (status < 100 || status > 999) {
                throw new CorruptRecordException("a stored response has status " + status);
            }
            byte[] body = new byte[in.available()];
            in.readFully(body);
            return new StoredResponse(form, status, headers, body);
        } catch (IOException e) {
            throw new CorruptRecordException("a stored response is truncated: " + bytes.length + " bytes");
        }
    }

    private static String text(DataInputStream in, int length) throws IOException {
        byte[] bytes = new byte[length];
        in.readFully(bytes);
        return new String(bytes, StandardCharsets.UTF_8);
    }
}
