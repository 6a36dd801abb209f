package io.idempotence.server.servlet;

import jakarta.servlet.ReadListener;
import jakarta.servlet.ServletInputStream;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.UnsupportedEncodingException;
import java.net.URLDecoder;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.nio.charset.UnsupportedCharsetException;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/** A request body that was read before its handler runs, as the handler reads it: as a stream, as text, or as form parameters. */
final class HeldBody {
    /** As many as containers accept by default. */
    private static final int MAX_PARAMETERS = 1000;

    private final RequestContent content;
    private final Executor afterDispatch;

    private @Nullable String encoding;
    private @Nullable ServletInputStream stream;
    private @Nullable BufferedReader reader;
    private @Nullable Map<String, String[]> parameters;

    /** @param afterDispatch runs the listener of a non-blocking stream */
    HeldBody(RequestContent content, Executor afterDispatch) {
        this.content = content;
        this.afterDispatch = afterDispatch;
    }

    /** Whether the container has parsed the body and serves it. */
    boolean isOfContainer() {
        return content.isOfContainer();
    }

    ServletInputStream stream() {
        if (reader != null) {
            throw new IllegalStateException("getReader() was called for this request");
        }
        if (stream == null) {
            stream = new BodyStream(content.body(), afterDispatch);
        }
        return stream;
    }

    BufferedReader reader(@Nullable String encoding) throws UnsupportedEncodingException {
        if (stream != null) {
            throw new IllegalStateException("getInputStream() was called for this request");
        }
        if (reader == null) {
            reader = new BufferedReader(
                    new InputStreamReader(new ByteArrayInputStream(content.body()), charset(encoding)));
        }
        return reader;
    }

    private static Charset charset(@Nullable String encoding) throws UnsupportedEncodingException {
        try {
            return encoding == null ? StandardCharsets.ISO_8859_1 : Charset.forName(encoding);
        } catch (IllegalArgumentException e) {
            throw new UnsupportedEncodingException(encoding);
        }
    }

    // A container whose stream was read ignores what the handler says of the encoding.

    void setEncoding(String encoding) {
        if (reader == null) {
            this.encoding = encoding;
        }
    }

    @Nullable
    String encoding() {
        return encoding;
    }

    /** The parameters of the query and of the form, in this order. A container cannot parse a form whose body was read. */
    Map<String, String[]> parameters(Map<String, String[]> ofQuery, @Nullable String encoding) {
        if (parameters == null) {
            Map<String, String[]> map = new LinkedHashMap<>(ofQuery);
            parseForm(content.body(), encoding, map);
            parameters = Collections.unmodifiableMap(map);
        }
        return parameters;
    }

    private static void parseForm(byte[] form, @Nullable String encoding, Map<String, String[]> into) {
        Charset charset;
        try {
            charset = encoding == null ? StandardCharsets.UTF_8 : Charset.forName(encoding);
        } catch (UnsupportedCharsetException e) {
            charset = StandardCharsets.UTF_8;
        }
        String[] pairs = new String(form, StandardCharsets.ISO_8859_1).split("&", MAX_PARAMETERS + 2);
        if (pairs.length > MAX_PARAMETERS + 1) {
            throw new IllegalStateException("the form has more than " + MAX_PARAMETERS + " parameters");
        }
        for (String pair : pairs) {
            if (!pair.isEmpty()) {
                int equals = pair.indexOf('=');
                String name = decode(equals < 0 ? pair : pair.substring(0, equals), charset);
                String value = equals < 0 ? "" : decode(pair.substring(equals + 1), charset);
                into.merge(name, new String[] {value}, HeldBody::joined);
            }
        }
    }

    private static String decode(String text, Charset charset) {
        try {
            return URLDecoder.decode(text, charset);
        } catch (IllegalArgumentException malformed) {
            return text;
        }
    }

    private static String[] joined(String[] first, String[] second) {
        String[] all = Arrays.copyOf(first, first.length + second.length);
        System.arraycopy(second, 0, all, first.length, second.length);
        return all;
    }

    /** Serves the body from memory, to blocking and to non-blocking readers. */
    private static final class BodyStream extends ServletInputStream {
        private final ByteArrayInputStream bytes;
        private final Executor afterDispatch;

        BodyStream(byte[] body, Executor afterDispatch) {
            this.bytes = new ByteArrayInputStream(body);
            this.afterDispatch = afterDispatch;
        }

        @Override
        public boolean isFinished() {
            return bytes.available() == 0;
        }

        @Override
        public boolean isReady() {
            return true;
        }

        @Override
        public void setReadListener(ReadListener listener) {
            afterDispatch.execute(() -> {
                try {
                    int before = -1;
                    while (!isFinished() && bytes.available() != before) {
                        before = bytes.available();
                        listener.onDataAvailable();
                    }
                    if (isFinished()) {
                        listener.onAllDataRead();
                    }
                } catch (IOException | RuntimeException e) {
                    listener.onError(e);
                }
            });
        }

        @Override
        public int read() {
            return bytes.read();
        }

        @Override
        public int read(byte[] buffer, int offset, int length) {
            return bytes.read(buffer, offset, length);
        }

        @Override
        public byte[] readAllBytes() {
            return bytes.readAllBytes();
        }

        @Override
        public int readNBytes(byte[] buffer, int offset, int length) {
            return bytes.readNBytes(buffer, offset, length);
        }

        @Override
        public long transferTo(OutputStream out) throws IOException {
            return bytes.transferTo(out);
        }

        @Override
        public int available() {
            return bytes.available();
        }
    }
}
