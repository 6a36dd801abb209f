package io.idempotence.server.servlet;

import jakarta.servlet.ReadListener;
import jakarta.servlet.ServletInputStream;
import jakarta.servlet.http.HttpServletRequest;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.UnsupportedEncodingException;
import java.nio.charset.Charset;
import java.nio.charset.CharsetDecoder;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/** A request body that was read before the handler runs. The handler reads it as a stream, as text, or as form parameters. */
final class HeldBody {
    private final RequestContent content;
    private final FormRules.Limits limits;
    private final Dispatches dispatches;

    private @Nullable String encoding;
    private @Nullable ServletInputStream stream;
    private @Nullable BufferedReader reader;
    private final @Nullable HeldParts parts;
    private @Nullable Map<String, String[]> form;
    private boolean formIsParsed;
    private volatile boolean keepsForm;

    /**
     * @param limits the limits of a form
     * @param dispatches calls the listener of a non-blocking stream
     */
    HeldBody(RequestContent content, FormRules.Limits limits, Dispatches dispatches) {
        this.content = content;
        this.limits = limits;
        this.dispatches = dispatches;
        this.parts = content.parts() == null ? null : new HeldParts(content.parts(), content.encoding());
    }

    /** The parts that the container has parsed; null if there are none. */
    @Nullable
    HeldParts parts() {
        return parts;
    }

    /** Whether there may be parameters that the container does not have, or has with other values. */
    boolean hasParameters(HttpServletRequest request, FormRules rules) {
        return parts != null || (!isOfContainer() && rules.parses(request));
    }

    /** Whether the container has parsed the body and serves it. */
    boolean isOfContainer() {
        return content.isOfContainer();
    }

    ServletInputStream stream() {
        if (reader != null) {
            throw new IllegalStateException(
                    "getReader() was called for this request, so getInputStream() is not available; use one of them");
        }
        if (stream == null) {
            stream = new BodyStream(unread(), dispatches);
        }
        return stream;
    }

    BufferedReader reader(boolean strict) throws UnsupportedEncodingException {
        if (stream != null) {
            throw new IllegalStateException(
                    "getInputStream() was called for this request, so getReader() is not available; use one of them");
        }
        if (reader == null) {
            CodingErrorAction onError = strict ? CodingErrorAction.REPORT : CodingErrorAction.REPLACE;
            CharsetDecoder decoder =
                    charset(encoding()).newDecoder().onMalformedInput(onError).onUnmappableCharacter(onError);
            reader = new BufferedReader(new InputStreamReader(new ByteArrayInputStream(unread()), decoder));
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

    // A container ignores an encoding that the handler sets after the body was read.

    void setEncoding(String encoding) throws UnsupportedEncodingException {
        charset(encoding);
        if (parts != null) {
            parts.choose(encoding);
        } else if (reader == null) {
            this.encoding = encoding;
        }
    }

    @Nullable
    String encoding() {
        return encoding != null ? encoding : content.encoding();
    }

    /**
     * Returns the parameters of the query, then those of the form. A container cannot parse a form whose body was read.
     *
     * @param container has the parameters of the query, or of the query and the parts
     */
    Map<String, String[]> parameters(HttpServletRequest container, FormRules rules) {
        Map<String, String[]> ofQuery = container.getParameterMap();
        if (parts != null) {
            return parts.parameters(ofQuery, container.getQueryString() != null, rules);
        }
        Map<String, String[]> ofForm = form(container, rules);
        if (ofQuery.isEmpty()) {
            return ofForm;
        }
        // A forward adds parameters of its own to those of the query.
        Map<String, String[]> all = new LinkedHashMap<>(ofQuery);
        ofForm.forEach((name, values) -> all.merge(name, values, FormRules::joined));
        return Collections.unmodifiableMap(all);
    }

    /** Returns the values of one of the {@link #parameters}; null if there are none. */
    String @Nullable [] values(String name, HttpServletRequest container, FormRules rules) {
        if (parts != null) {
            return parameters(container, rules).get(name);
        }
        String[] ofForm = form(container, rules).get(name);
        String[] ofQuery = container.getParameterValues(name);
        if (ofForm == null || ofQuery == null) {
            return ofForm == null ? ofQuery : ofForm;
        }
        return FormRules.joined(ofQuery, ofForm);
    }

    private Map<String, String[]> form(HttpServletRequest container, FormRules rules) {
        if (form == null) {
            form = parsed(container, container.getParameterMap(), rules);
        }
        return form;
    }

    private Map<String, String[]> parsed(HttpServletRequest request, Map<String, String[]> ofQuery, FormRules rules) {
        if (stream != null || reader != null) {
            return Map.of();
        }
        int before = ofQuery.values().stream().mapToInt(values -> values.length).sum();
        Map<String, String[]> parameters = parsed(request, before, rules);
        formIsParsed = true;
        return Collections.unmodifiableMap(parameters);
    }

    private Map<String, String[]> parsed(HttpServletRequest request, int before, FormRules rules) {
        return rules.parse(content.body(), MediaTypes.of(request), encoding(), before, limits);
    }

    /**
     * Returns the names of a form's parameters. An unread form stays unread: the handler may still choose an encoding, or read the body.
     * Empty if the body was read or cannot be parsed.
     */
    Set<String> namesOfForm(HttpServletRequest request, FormRules rules) {
        if (form != null) {
            return form.keySet();
        }
        if (stream != null || reader != null) {
            return Set.of();
        }
        try {
            return parsed(request, 0, rules).keySet();
        } catch (RuntimeException theHandlerGetsItIfItAsks) {
            return Set.of();
        }
    }

    /**
     * Parses a form that was not read yet, and keeps its parameters for an error page, which comes after the body is closed. Jetty itself
     * drops the form before the page.
     */
    void keepForm(HttpServletRequest request) {
        FormRules rules = FormRules.of(request);
        if (form == null && !isOfContainer() && rules != null && !rules.isJetty() && rules.parses(request)) {
            try {
                form = parsed(request, Map.of(), rules);
            } catch (IllegalStateException e) {
                // The form is malformed or too large. The page reports another failure than that of the form.
                form = Map.of();
            }
        }
        keepsForm = hasForm();
    }

    /** Whether there are parameters that the container does not have. */
    boolean hasForm() {
        return form != null && !form.isEmpty();
    }

    /**
     * Returns the body, or nothing if its form was parsed. In a container, too, a form is read only once: as parameters, or by the handler.
     */
    private byte[] unread() {
        return formIsParsed ? new byte[0] : content.body();
    }

    /** A share of the filter's memory for the response to this request. */
    MemoryBudget.Share memory() {
        return content.memory();
    }

    /** Drops the body, which the handler no longer reads. Parameters that are kept for an error page still count. */
    void close() {
        if (keepsForm) {
            content.closeBody();
        } else {
            content.close();
        }
    }

    /** Counts the parameters again, because an error page may begin and read them. */
    void resumeForm() {
        if (keepsForm) {
            content.resumeParameters();
        }
    }

    /** Stops counting the parameters, because no error page can read them any more. */
    void closeForm() {
        content.close();
    }

    /** A stream of the body in memory, for blocking and non-blocking readers. */
    private static final class BodyStream extends ServletInputStream {
        private final ByteArrayInputStream bytes;
        private final Dispatches dispatches;
        private final AtomicBoolean endIsReported = new AtomicBoolean();
        private volatile @Nullable ReadListener listener;

        BodyStream(byte[] body, Dispatches dispatches) {
            this.bytes = new ByteArrayInputStream(body);
            this.dispatches = dispatches;
        }

        @Override
        public boolean isFinished() {
            return bytes.available() == 0;
        }

        /** Like a container, it notifies the listener when another thread has read the rest and asks for more. */
        @Override
        public boolean isReady() {
            ReadListener reading = listener;
            if (reading == null || !isFinished()) {
                return true;
            }
            if (endIsReported.compareAndSet(false, true)) {
                dispatches.callListener(reading::onAllDataRead, reading::onError);
            }
            return false;
        }

        @Override
        public void setReadListener(ReadListener listener) {
            Objects.requireNonNull(listener, "listener");
            if (this.listener != null) {
                throw new IllegalStateException(
                        "setReadListener() was called for this request, so another listener is not accepted; set only one");
            }
            dispatches.requireAsync();
            this.listener = listener;
            dispatches.callListener(() -> callUntilRead(listener), listener::onError);
        }

        private void callUntilRead(ReadListener listener) throws IOException {
            int before = -1;
            while (!isFinished() && bytes.available() != before) {
                before = bytes.available();
                listener.onDataAvailable();
            }
            if (isFinished() && endIsReported.compareAndSet(false, true)) {
                listener.onAllDataRead();
            }
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
