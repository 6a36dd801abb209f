package io.idempotence.server.servlet;

import io.idempotence.http.IdempotenceHeaders;
import io.idempotence.server.StoredResponse;
import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.ServletResponseWrapper;
import jakarta.servlet.WriteListener;
import jakarta.servlet.http.Cookie;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpServletResponseWrapper;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.Writer;
import java.nio.charset.Charset;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A response whose body is held back until its execution is recorded, so that nobody sees an answer that could still be executed again.
 *
 * <p>Status and headers go to the container's response at once, which decides everything about them; only what would commit it is held:
 * the body, {@code flushBuffer}, {@code sendError}, {@code sendRedirect}. A body over the cap streams through and is not kept (rule 13).
 * Once the client is gone the rest is thrown away, so that the handler does not fail for it (rule 12).
 */
final class HeldResponse implements HttpServletResponse {
    private static final Logger LOG = LoggerFactory.getLogger(HeldResponse.class);

    private final HttpServletResponse container;
    private final Exchange exchange;
    private final int cap;
    private final HandlerHeaders headers;
    /** The kept headers as they were when bytes began to leave; null if none have, or the handler went on to change some. */
    private @Nullable List<StoredResponse.Header> leavingHeaders;

    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream(256);
    private final StringBuilder chars = new StringBuilder();
    private @Nullable ServletOutputStream stream;
    private @Nullable PrintWriter writer;
    private @Nullable Writer containerWriter;

    private boolean committed;
    private boolean closed;
    private boolean streaming;
    private boolean oversize;
    private boolean clientGone;
    private long declaredLength = -1;
    private @Nullable Deferred deferred;

    HeldResponse(HttpServletResponse response, int cap, HandlerHeaders headers, Exchange exchange) {
        this.container = response;
        this.cap = cap;
        this.headers = headers;
        this.exchange = exchange;
    }

    /** An answer that the container makes from less than its bytes. */
    sealed interface Deferred {
        void applyTo(HttpServletResponse response) throws IOException;

        record Failure(int status, @Nullable String message) implements Deferred {
            @Override
            public void applyTo(HttpServletResponse response) throws IOException {
                if (message == null) {
                    response.sendError(status);
                } else {
                    response.sendError(status, message);
                }
            }
        }

        record Redirect(String location, int status, boolean clearBuffer) implements Deferred {
            @Override
            public void applyTo(HttpServletResponse response) throws IOException {
                if (status == SC_FOUND && clearBuffer) {
                    response.sendRedirect(location);
                } else {
                    // Only Servlet 6.1 has it, and only a Servlet 6.1 container lets a handler ask for it.
                    response.sendRedirect(location, status, clearBuffer);
                }
            }
        }
    }

    // ---- for the exchange

    /**
     * This response as the handler gets it. Dispatchers must be able to unwrap it to the container's own (Servlet 6, section 9.2), except
     * in Tomcat, which uses that to finish its own response after a forward: what is held here would be lost.
     */
    HttpServletResponse forHandler() {
        ServletResponse base = container;
        while (base instanceof ServletResponseWrapper wrapper) {
            base = wrapper.getResponse();
        }
        boolean tomcat = base.getClass().getName().equals("org.apache.catalina.connector.ResponseFacade");
        return tomcat ? this : new Unwrappable(this, container);
    }

    /** Calls go to the held response, unwrapping goes past it. */
    private static final class Unwrappable extends HttpServletResponseWrapper {
        private final HttpServletResponse container;

        Unwrappable(HeldResponse held, HttpServletResponse container) {
            super(held);
            this.container = container;
        }

        @Override
        public ServletResponse getResponse() {
            return container;
        }
    }

    @Nullable
    Deferred deferred() {
        return deferred;
    }

    /** Whether the body is too large to be kept. */
    boolean oversize() {
        return oversize;
    }

    /** Whether the handler's bytes go through at once, so that they are its answer even if the container ends it. */
    boolean passesThrough() {
        return streaming;
    }

    /** Whether a byte may have left already. */
    boolean streaming() {
        return streaming || container.isCommitted();
    }

    /** Whether the handler has committed an answer of its own: without this filter the client might have seen it. */
    boolean hasBegunAnAnswer() {
        return isCommitted() && !(deferred instanceof Deferred.Failure);
    }

    /** Whether nothing can be added to the answer any more. */
    boolean isWhole() {
        return closed;
    }

    /** Whether {@code body} has more than the handler's own Content-Length says, so that the client gets less of it. */
    boolean isCutByContainer(byte[] body) {
        return declaredLength >= 0 && body.length > declaredLength;
    }

    /** The body the client gets, as far as it was held. */
    byte[] body() {
        if (containerWriter == null) {
            return bytes.toByteArray();
        }
        byte[] encoded = chars.toString().getBytes(charset());
        oversize |= encoded.length > cap;
        return encoded;
    }

    private Charset charset() {
        return Charset.forName(getCharacterEncoding());
    }

    /** The headers that are kept, as the handler left them. */
    List<StoredResponse.Header> keptHeaders() {
        return leavingHeaders != null ? leavingHeaders : headers.kept(container);
    }

    /** A container that sends the first bytes may compress them, and says so in headers that are not the handler's. */
    private void leaving() {
        if (leavingHeaders == null && !container.isCommitted()) {
            leavingHeaders = headers.kept(container);
        }
    }

    /** Lets go what was held. The client may be gone: that is no failure of the handler. */
    void deliver() {
        if (streaming) {
            return;
        }
        try {
            if (deferred == null || deferred instanceof Deferred.Redirect) {
                writeHeld();
            }
            if (deferred != null) {
                deferred.applyTo(container);
            }
        } catch (IOException e) {
            gone(e);
        } catch (RuntimeException e) {
            notTaken(e);
        }
    }

    /** The answer is recorded, and its caller must ask again: what was begun must not look like the whole of it. */
    private void notTaken(RuntimeException e) {
        if (exchange.gaveUp()) {
            // A response the container has recycled throws what it likes.
            gone(e);
            return;
        }
        clientGone = true;
        LOG.warn("the container, or a filter in front, did not take an answer, which is recorded", e);
        if (container.isCommitted()) {
            // Only whoever throws makes a container cut an answer that has begun.
            throw e;
        }
        headers.undo(container);
        container.setStatus(SC_INTERNAL_SERVER_ERROR);
    }

    /** Throws away what was held and what the handler set, so that another answer can be given. */
    void discard() {
        bytes.reset();
        chars.setLength(0);
        headers.undo(container);
    }

    /** From now on every byte goes through at once, and is kept as well as long as it fits. */
    void stopHolding() {
        if (!streaming) {
            streaming = true;
            leaving();
            try {
                writeHeld();
            } catch (IOException e) {
                gone(e);
            }
        }
    }

    private void writeHeld() throws IOException {
        if (containerWriter != null) {
            containerWriter.append(chars);
        } else if (bytes.size() > 0) {
            bytes.writeTo(container.getOutputStream());
        }
    }

    private void gone(Exception e) {
        clientGone = true;
        LOG.debug("the client is gone, its answer is recorded or not as if it were there", e);
    }

    // ---- body

    @Override
    public ServletOutputStream getOutputStream() {
        if (writer != null) {
            throw new IllegalStateException("getWriter() was called for this response");
        }
        if (stream == null) {
            stream = new HeldStream();
        }
        return stream;
    }

    @Override
    public PrintWriter getWriter() throws IOException {
        if (stream != null) {
            throw new IllegalStateException("getOutputStream() was called for this response");
        }
        if (writer == null) {
            // The container settles the encoding and what Content-Type says of it.
            containerWriter = container.getWriter();
            if (!isCommitted()) {
                leavingHeaders = null;
            }
            writer = new PrintWriter(new HeldWriter());
        }
        return writer;
    }

    private void write(byte[] buffer, int offset, int length) {
        if (closed || !makeRoom(bytes.size(), length)) {
            return;
        }
        if (!oversize) {
            bytes.write(buffer, offset, length);
        }
        if (streaming && !clientGone) {
            leaving();
            try {
                container.getOutputStream().write(buffer, offset, length);
            } catch (IOException e) {
                gone(e);
            }
        }
    }

    private void write(char[] buffer, int offset, int length) {
        if (closed || !makeRoom(chars.length(), length)) {
            return;
        }
        if (!oversize) {
            chars.append(buffer, offset, length);
        }
        if (streaming && !clientGone && containerWriter != null) {
            leaving();
            try {
                containerWriter.write(buffer, offset, length);
            } catch (IOException e) {
                gone(e);
            }
        }
    }

    /** Starts to stream when the cap is passed; what was held so far is gone then, it can never be kept whole. */
    private boolean makeRoom(int held, int more) {
        if (!oversize && held > cap - more) {
            stopHolding();
            oversize = true;
            bytes.reset();
            chars.setLength(0);
        }
        return more > 0;
    }

    private void flushNow() {
        committed = true;
        if (streaming && !clientGone) {
            leaving();
            try {
                container.flushBuffer();
            } catch (IOException e) {
                gone(e);
            }
        }
    }

    private final class HeldStream extends ServletOutputStream {
        @Override
        public boolean isReady() {
            return true;
        }

        @Override
        public void setWriteListener(WriteListener listener) {
            exchange.whenDispatched(() -> {
                try {
                    listener.onWritePossible();
                } catch (IOException | RuntimeException e) {
                    listener.onError(e);
                }
            });
        }

        @Override
        public void write(int b) {
            HeldResponse.this.write(new byte[] {(byte) b}, 0, 1);
        }

        @Override
        public void write(byte[] buffer, int offset, int length) {
            HeldResponse.this.write(buffer, offset, length);
        }

        @Override
        public void flush() {
            flushNow();
        }

        @Override
        public void close() {
            flushNow();
            closed = true;
        }
    }

    private final class HeldWriter extends Writer {
        @Override
        public void write(char[] buffer, int offset, int length) {
            HeldResponse.this.write(buffer, offset, length);
        }

        @Override
        public void flush() {
            flushNow();
        }

        @Override
        public void close() {
            flushNow();
            closed = true;
        }
    }

    // ---- what would commit the response

    @Override
    public void flushBuffer() {
        flushNow();
    }

    @Override
    public boolean isCommitted() {
        return committed || container.isCommitted();
    }

    @Override
    public void reset() {
        resetBuffer();
        container.reset();
        leavingHeaders = null;
        declaredLength = -1;
        stream = null;
        writer = null;
        containerWriter = null;
    }

    @Override
    public void resetBuffer() {
        if (isCommitted()) {
            throw new IllegalStateException("the response is committed");
        }
        container.resetBuffer();
        bytes.reset();
        chars.setLength(0);
    }

    @Override
    public void sendError(int status) {
        defer(status, new Deferred.Failure(status, null), true);
    }

    @Override
    public void sendError(int status, String message) {
        defer(status, new Deferred.Failure(status, message), true);
    }

    @Override
    public void sendRedirect(String location) {
        sendRedirect(location, SC_FOUND, true);
    }

    @Override
    public void sendRedirect(String location, int status, boolean clearBuffer) {
        defer(status, new Deferred.Redirect(location, status, clearBuffer), clearBuffer);
    }

    private void defer(int status, Deferred answer, boolean clearBuffer) {
        if (isCommitted()) {
            throw new IllegalStateException("the response is committed");
        }
        if (clearBuffer) {
            resetBuffer();
        }
        container.setStatus(status);
        deferred = answer;
        committed = true;
        closed = true;
        if (streaming) {
            leaving();
            try {
                answer.applyTo(container);
            } catch (IOException e) {
                gone(e);
            }
        }
    }

    // ---- headers: ignored once committed, as every container does; two names are the framework's own

    private boolean fixed(@Nullable String name) {
        return isCommitted()
                || IdempotenceHeaders.IDEMPOTENT_REPLAYED.equalsIgnoreCase(name)
                || IdempotenceHeaders.IDEMPOTENCY_REFUSAL.equalsIgnoreCase(name);
    }

    private void changing(@Nullable String name) {
        headers.changing(name, container);
        leavingHeaders = null;
    }

    private void declareLength(@Nullable String name, @Nullable String value) {
        if ("Content-Length".equalsIgnoreCase(name)) {
            try {
                declaredLength = value == null ? -1 : Long.parseLong(value.trim());
            } catch (NumberFormatException ignoredByContainers) {
                declaredLength = -1;
            }
        }
    }

    @Override
    public void setHeader(String name, @Nullable String value) {
        if (!fixed(name)) {
            changing(name);
            container.setHeader(name, value);
            declareLength(name, value);
        }
    }

    @Override
    public void addHeader(String name, @Nullable String value) {
        if (!fixed(name)) {
            changing(name);
            container.addHeader(name, value);
            declareLength(name, value);
        }
    }

    @Override
    public void setIntHeader(String name, int value) {
        if (!fixed(name)) {
            changing(name);
            container.setIntHeader(name, value);
            declareLength(name, String.valueOf(value));
        }
    }

    @Override
    public void addIntHeader(String name, int value) {
        if (!fixed(name)) {
            changing(name);
            container.addIntHeader(name, value);
            declareLength(name, String.valueOf(value));
        }
    }

    @Override
    public void setDateHeader(String name, long value) {
        if (!fixed(name)) {
            changing(name);
            container.setDateHeader(name, value);
        }
    }

    @Override
    public void addDateHeader(String name, long value) {
        if (!fixed(name)) {
            changing(name);
            container.addDateHeader(name, value);
        }
    }

    @Override
    public void setStatus(int status) {
        if (!isCommitted()) {
            container.setStatus(status);
        }
    }

    @Override
    public void addCookie(Cookie cookie) {
        if (!isCommitted()) {
            changing("Set-Cookie");
            container.addCookie(cookie);
        }
    }

    @Override
    public void setContentType(@Nullable String type) {
        if (!isCommitted()) {
            leavingHeaders = null;
            container.setContentType(type);
        }
    }

    @Override
    public void setCharacterEncoding(@Nullable String charset) {
        if (!isCommitted()) {
            leavingHeaders = null;
            container.setCharacterEncoding(charset);
        }
    }

    @Override
    public void setLocale(@Nullable Locale locale) {
        if (!isCommitted()) {
            changing("Content-Language");
            String before = container.getHeader("Content-Language");
            container.setLocale(locale);
            if (Objects.equals(before, container.getHeader("Content-Language"))) {
                // Tomcat would write it only when the answer leaves.
                container.setHeader("Content-Language", locale == null ? null : locale.toLanguageTag());
            }
        }
    }

    @Override
    public void setContentLength(int length) {
        if (!isCommitted()) {
            container.setContentLength(length);
            declaredLength = length;
        }
    }

    @Override
    public void setContentLengthLong(long length) {
        if (!isCommitted()) {
            container.setContentLengthLong(length);
            declaredLength = length;
        }
    }

    // ---- passed on as it is

    @Override
    public boolean containsHeader(String name) {
        return container.containsHeader(name);
    }

    @Override
    public @Nullable String getHeader(String name) {
        return container.getHeader(name);
    }

    @Override
    public Collection<String> getHeaders(String name) {
        return container.getHeaders(name);
    }

    @Override
    public Collection<String> getHeaderNames() {
        return container.getHeaderNames();
    }

    @Override
    public int getStatus() {
        return container.getStatus();
    }

    @Override
    public String getCharacterEncoding() {
        return container.getCharacterEncoding();
    }

    @Override
    public @Nullable String getContentType() {
        return container.getContentType();
    }

    @Override
    public Locale getLocale() {
        return container.getLocale();
    }

    @Override
    public String encodeURL(String url) {
        return container.encodeURL(url);
    }

    @Override
    public String encodeRedirectURL(String url) {
        return container.encodeRedirectURL(url);
    }

    @Override
    public void setBufferSize(int size) {
        container.setBufferSize(size);
    }

    @Override
    public int getBufferSize() {
        return container.getBufferSize();
    }

    @Override
    public void setTrailerFields(@Nullable Supplier<Map<String, String>> trailers) {
        container.setTrailerFields(trailers);
    }

    @Override
    public @Nullable Supplier<Map<String, String>> getTrailerFields() {
        return container.getTrailerFields();
    }
}
