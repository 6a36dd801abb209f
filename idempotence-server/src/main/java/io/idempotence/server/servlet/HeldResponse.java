package io.idempotence.server.servlet;

import io.idempotence.http.IdempotenceHeaders;
import io.idempotence.http.Refusal;
import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.ServletResponseWrapper;
import jakarta.servlet.http.Cookie;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpServletResponseWrapper;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.charset.Charset;
import java.util.Locale;
import java.util.Objects;
import java.util.Set;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * A response that a handler writes to. It is held back until its execution is recorded, so that no client sees the response of a request
 * that could still run again.
 *
 * <p>Status and headers go to the wrapped response at once, and its rules for them apply. Only what would commit it is held, in a
 * {@link ResponseBuffer}: the body, {@code flushBuffer}, {@code sendError}, {@code sendRedirect}.
 */
final class HeldResponse extends HttpServletResponseWrapper implements ResponseBuffer.Outlet {
    private static final StackWalker STACK = StackWalker.getInstance();
    /** The methods of a forward in Tomcat 11 and in Tomcat 10.1. */
    private static final Set<String> FORWARDS = Set.of("forward", "doForward");

    private final ResponseBuffer buffer;
    /** The response that this one is delivered to. In an include, Tomcat may put a wrapper of its own in front of it. */
    private HttpServletResponse target;
    /** Whether the handler is in an include. There containers ignore what ends a response, its length and a reset (Servlet 6, 9.3). */
    private BooleanSupplier isIncluded = () -> false;

    HeldResponse(HttpServletResponse target, ResponseBuffer buffer) {
        super(target);
        this.target = target;
        this.buffer = buffer;
    }

    /** Returns the response to which a handler writes unless it asks for another one. */
    static HeldResponse first(HttpServletResponse target, ResponseBuffer buffer) {
        HeldResponse first = new HeldResponse(target, buffer);
        buffer.through(first);
        return first;
    }

    HeldResponse including(BooleanSupplier included) {
        this.isIncluded = included;
        return this;
    }

    @Override
    public HttpServletResponse target() {
        return target;
    }

    /**
     * Sets the response to deliver to: the one that the filters in front made for this dispatch. If they wrapped {@code ofHandler}, their
     * wrappers are put around the response that was delivered to before.
     *
     * @param ofHandler this response, or a wrapper around it
     */
    void deliverTo(HttpServletResponse arrived, ServletResponse ofHandler) {
        ServletResponse current = arrived;
        while (current instanceof ServletResponseWrapper wrapper && current != ofHandler) {
            current = wrapper.getResponse();
            if (current == ofHandler) {
                wrapper.setResponse(target);
            }
        }
        if (in(arrived, buffer) == null) {
            target = arrived;
            setResponse(arrived);
        }
    }

    /** Returns the held response of {@code buffer} that gets what a handler writes to {@code response}; null if such writes bypass it. */
    static @Nullable HeldResponse in(ServletResponse response, ResponseBuffer buffer) {
        return (HeldResponse)
                Wrappers.find(response, current -> current instanceof HeldResponse held && held.buffer == buffer);
    }

    /**
     * Returns the wrapped response, but null to Tomcat's dispatcher at the end of a forward. The dispatcher would otherwise find the
     * container's own response and suspend it, and what is held here would be lost. With null it closes this response, as the specification
     * requires.
     */
    @Override
    public @Nullable ServletResponse getResponse() {
        return STACK.walk(frames -> frames.skip(1).limit(1).anyMatch(HeldResponse::endsForwardOfTomcat))
                ? null
                : super.getResponse();
    }

    private static boolean endsForwardOfTomcat(StackWalker.StackFrame caller) {
        return FORWARDS.contains(caller.getMethodName())
                && caller.getClassName().equals("org.apache.catalina.core.ApplicationDispatcher");
    }

    private HttpServletResponse container() {
        return (HttpServletResponse) super.getResponse();
    }

    // ---- body

    @Override
    public ServletOutputStream getOutputStream() {
        return buffer.stream(this);
    }

    @Override
    public PrintWriter getWriter() throws IOException {
        return buffer.writer(this);
    }

    // ---- what would commit the response

    @Override
    public void flushBuffer() {
        buffer.flushBuffer();
    }

    @Override
    public boolean isCommitted() {
        return buffer.isCommitted();
    }

    @Override
    public void reset() {
        if (!isIncluded.getAsBoolean()) {
            buffer.reset(container());
        }
    }

    @Override
    public void resetBuffer() {
        buffer.resetBuffer(container());
    }

    @Override
    public void sendError(int status) {
        sendError(status, null);
    }

    @Override
    public void sendError(int status, @Nullable String message) {
        if (isIncluded.getAsBoolean()) {
            return;
        }
        DeferredResponse.Failure failure = new DeferredResponse.Failure(status, message);
        if (isInterim(status)) {
            buffer.sendInterim(() -> failure.applyTo(container()));
        } else {
            buffer.defer(failure, container(), true);
        }
    }

    /** Whether the container sends this status at once, and the handler's response follows it. Others would end the response with it. */
    private boolean isInterim(int status) {
        return switch (status) {
            case 102 -> Wrappers.isOfJetty(target);
            case 103 -> Wrappers.isOfJetty(target) || Wrappers.isOfTomcat(target);
            default -> false;
        };
    }

    @Override
    public void sendRedirect(String location) {
        sendRedirect(location, SC_FOUND, true);
    }

    @Override
    public void sendRedirect(String location, int status) {
        sendRedirect(location, status, true);
    }

    @Override
    public void sendRedirect(String location, boolean clearBuffer) {
        sendRedirect(location, SC_FOUND, clearBuffer);
    }

    @Override
    public void sendRedirect(String location, int status, boolean clearBuffer) {
        if (!isIncluded.getAsBoolean()) {
            buffer.defer(new DeferredResponse.StoredRedirect(location, status, clearBuffer), container(), clearBuffer);
        }
    }

    // ---- URLs

    @Override
    public @Nullable String encodeURL(@Nullable String url) {
        return buffer.sessionIds().encoded(url, super.encodeURL(url));
    }

    @Override
    public @Nullable String encodeRedirectURL(@Nullable String url) {
        return buffer.sessionIds().encoded(url, super.encodeRedirectURL(url));
    }

    // ---- headers: ignored once committed, as in every container; two names are reserved for this library

    private boolean fixed(@Nullable String name) {
        return isCommitted()
                || IdempotenceHeaders.IDEMPOTENT_REPLAYED.equalsIgnoreCase(name)
                || IdempotenceHeaders.IDEMPOTENCY_REFUSAL.equalsIgnoreCase(name);
    }

    /** Notes a refusal that the handler relays. Its header does not leave, because it would look like a refusal of this filter. */
    private void noteRefusal(@Nullable String name, @Nullable String code) {
        if (IdempotenceHeaders.IDEMPOTENCY_REFUSAL.equalsIgnoreCase(name) && !isCommitted()) {
            buffer.relaysRefusal(code != null
                    && Refusal.ofCode(code).filter(Refusal::retryable).isPresent());
        }
    }

    private void changing(@Nullable String name) {
        buffer.changing(name, container());
    }

    private void declareLength(@Nullable String name, @Nullable String value) {
        if ("Content-Length".equalsIgnoreCase(name)) {
            try {
                declareLength(value == null ? -1 : Long.parseLong(value.trim()));
            } catch (NumberFormatException ignoredByContainers) {
                declareLength(-1);
            }
        }
    }

    private void declareLength(long length) {
        if (!isIncluded.getAsBoolean()) {
            buffer.declareLength(length);
        }
    }

    @Override
    public void setHeader(String name, @Nullable String value) {
        noteRefusal(name, value);
        if (!fixed(name)) {
            changing(name);
            super.setHeader(name, value);
            declareLength(name, value);
        }
    }

    @Override
    public void addHeader(String name, @Nullable String value) {
        noteRefusal(name, value);
        if (!fixed(name)) {
            changing(name);
            super.addHeader(name, value);
            declareLength(name, value);
        }
    }

    @Override
    public void setIntHeader(String name, int value) {
        if (!fixed(name)) {
            changing(name);
            super.setIntHeader(name, value);
            declareLength(name, String.valueOf(value));
        }
    }

    @Override
    public void addIntHeader(String name, int value) {
        if (!fixed(name)) {
            changing(name);
            super.addIntHeader(name, value);
            declareLength(name, String.valueOf(value));
        }
    }

    @Override
    public void setDateHeader(String name, long value) {
        if (!fixed(name)) {
            changing(name);
            super.setDateHeader(name, value);
        }
    }

    @Override
    public void addDateHeader(String name, long value) {
        if (!fixed(name)) {
            changing(name);
            super.addDateHeader(name, value);
        }
    }

    @Override
    public void setStatus(int status) {
        if (!isCommitted()) {
            super.setStatus(status);
        }
    }

    @Override
    public void addCookie(Cookie cookie) {
        if (!isCommitted()) {
            changing("Set-Cookie");
            super.addCookie(cookie);
        }
    }

    @Override
    public void setContentType(@Nullable String type) {
        if (!isCommitted()) {
            buffer.changingType();
            super.setContentType(type);
        }
    }

    @Override
    public void setCharacterEncoding(@Nullable String charset) {
        if (!isCommitted()) {
            buffer.changingType();
            super.setCharacterEncoding(charset);
        }
    }

    @Override
    public void setCharacterEncoding(@Nullable Charset charset) {
        setCharacterEncoding(charset == null ? null : charset.name());
    }

    @Override
    public void setLocale(@Nullable Locale locale) {
        if (!isCommitted()) {
            changing("Content-Language");
            String before = getHeader("Content-Language");
            super.setLocale(locale);
            if (Objects.equals(before, getHeader("Content-Language"))) {
                // Tomcat would set it only when the response leaves.
                super.setHeader("Content-Language", locale == null ? null : locale.toLanguageTag());
            }
        }
    }

    @Override
    public void setContentLength(int length) {
        if (!isCommitted()) {
            super.setContentLength(length);
            declareLength(length);
        }
    }

    @Override
    public void setContentLengthLong(long length) {
        if (!isCommitted()) {
            super.setContentLengthLong(length);
            declareLength(length);
        }
    }
}
