package io.idempotence.server.servlet;

import jakarta.servlet.AsyncContext;
import jakarta.servlet.ReadListener;
import jakarta.servlet.ServletInputStream;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
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
import java.util.Enumeration;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** A request whose body was read before its handler runs, and whose asynchronous processing the exchange follows. */
final class HeldRequest extends HttpServletRequestWrapper {
    /** As many as containers accept by default. */
    private static final int MAX_PARAMETERS = 1000;

    private final Exchange exchange;

    /** Null if the container has parsed the body into parts; the container then serves it. */
    private final byte @Nullable [] body;

    private @Nullable ServletInputStream stream;
    private @Nullable BufferedReader reader;
    private @Nullable Map<String, String[]> parameters;

    HeldRequest(HttpServletRequest request, byte @Nullable [] body, Exchange exchange) {
        super(request);
        this.body = body;
        this.exchange = exchange;
    }

    @Override
    public ServletInputStream getInputStream() throws IOException {
        if (body == null) {
            return super.getInputStream();
        }
        if (reader != null) {
            throw new IllegalStateException("getReader() was called for this request");
        }
        if (stream == null) {
            stream = new BodyStream(body, exchange);
        }
        return stream;
    }

    @Override
    public BufferedReader getReader() throws IOException {
        if (body == null) {
            return super.getReader();
        }
        if (stream != null) {
            throw new IllegalStateException("getInputStream() was called for this request");
        }
        if (reader == null) {
            reader = new BufferedReader(new InputStreamReader(new ByteArrayInputStream(body), charset()));
        }
        return reader;
    }

    private Charset charset() throws UnsupportedEncodingException {
        String name = getCharacterEncoding();
        try {
            return name == null ? StandardCharsets.ISO_8859_1 : Charset.forName(name);
        } catch (IllegalArgumentException e) {
            throw new UnsupportedEncodingException(name);
        }
    }

    // The container cannot parse a form whose body was read already. The query's parameters come first (Servlet 6,
    // section 3.1).

    @Override
    public @Nullable String getParameter(String name) {
        String[] values = getParameterValues(name);
        return values == null ? null : values[0];
    }

    @Override
    public String @Nullable [] getParameterValues(String name) {
        String[] values = getParameterMap().get(name);
        return values == null ? null : values.clone();
    }

    @Override
    public Enumeration<String> getParameterNames() {
        return Collections.enumeration(getParameterMap().keySet());
    }

    @Override
    public Map<String, String[]> getParameterMap() {
        if (body == null || !MediaTypes.isForm(getContentType())) {
            return super.getParameterMap();
        }
        if (parameters == null) {
            Map<String, String[]> map = new LinkedHashMap<>(super.getParameterMap());
            parseForm(body, map);
            parameters = Collections.unmodifiableMap(map);
        }
        return parameters;
    }

    private void parseForm(byte[] form, Map<String, String[]> into) {
        Charset charset;
        try {
            String name = getCharacterEncoding();
            charset = name == null ? StandardCharsets.UTF_8 : Charset.forName(name);
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
                into.merge(name, new String[] {value}, HeldRequest::joined);
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

    // startAsync() without arguments would hand the container's own request and response to the handler, past the
    // exchange.

    @Override
    public AsyncContext startAsync() {
        return exchange.startAsync(this, exchange.responseForHandler());
    }

    @Override
    public AsyncContext startAsync(ServletRequest request, ServletResponse response) {
        return exchange.startAsync(request, response);
    }

    @Override
    public AsyncContext getAsyncContext() {
        return exchange.asyncContext(super.getAsyncContext());
    }

    /** Serves the body from memory, to blocking and to non-blocking readers. */
    private static final class BodyStream extends ServletInputStream {
        private final ByteArrayInputStream bytes;
        private final Exchange exchange;

        BodyStream(byte[] body, Exchange exchange) {
            this.bytes = new ByteArrayInputStream(body);
            this.exchange = exchange;
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
            exchange.whenDispatched(() -> {
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
