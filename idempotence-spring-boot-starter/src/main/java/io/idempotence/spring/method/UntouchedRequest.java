package io.idempotence.spring.method;

import jakarta.servlet.ServletInputStream;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import jakarta.servlet.http.Part;
import java.io.BufferedReader;
import java.util.Collection;
import java.util.Collections;
import java.util.Enumeration;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A view of a request that a look-up of its handler may use. It leaves the attributes and the body of the request as they are, unless the
 * form is {@linkplain #parseForm parsed}.
 */
final class UntouchedRequest extends HttpServletRequestWrapper {
    /** An attribute without a value is removed. */
    private final Map<String, Optional<Object>> changed = new HashMap<>();

    private boolean formIsParsed;
    private boolean formWithheld;
    private boolean bodyWithheld;

    /** @param attributes those that the look-up finds in addition */
    UntouchedRequest(HttpServletRequest request, Map<String, Object> attributes) {
        super(request);
        attributes.forEach(this::setAttribute);
    }

    /** Whether a look-up asked for parameters that may be in the body. */
    boolean isFormWithheld() {
        return formWithheld;
    }

    /** Whether a look-up asked for the body itself. */
    boolean isBodyWithheld() {
        return bodyWithheld;
    }

    /** Has the container parse the form, so that a look-up gets its parameters. Throws what the container throws. */
    void parseForm() {
        super.getParameterMap();
        formIsParsed = true;
        formWithheld = false;
    }

    /** Thrown where a look-up would read the body. */
    static final class NeedsBodyException extends RuntimeException {
        private static final long serialVersionUID = 1L;

        NeedsBodyException() {
            super("the look-up of a handler needs the body of the request", null, false, false);
        }
    }

    @Override
    public @Nullable Object getAttribute(String name) {
        Optional<Object> value = changed.get(name);
        return value == null ? super.getAttribute(name) : value.orElse(null);
    }

    @Override
    public void setAttribute(String name, @Nullable Object value) {
        changed.put(name, Optional.ofNullable(value));
    }

    @Override
    public void removeAttribute(String name) {
        changed.put(name, Optional.empty());
    }

    @Override
    public Enumeration<String> getAttributeNames() {
        Set<String> names = new LinkedHashSet<>(Collections.list(super.getAttributeNames()));
        changed.forEach((name, value) -> {
            if (value.isPresent()) {
                names.add(name);
            } else {
                names.remove(name);
            }
        });
        return Collections.enumeration(names);
    }

    private void mayReadParameters() {
        String type = getContentType();
        if (type != null && !formIsParsed) {
            String lower = type.toLowerCase(Locale.ROOT);
            if (lower.startsWith("application/x-www-form-urlencoded") || lower.startsWith("multipart/")) {
                formWithheld = true;
                throw new NeedsBodyException();
            }
        }
    }

    @Override
    public @Nullable String getParameter(String name) {
        mayReadParameters();
        return super.getParameter(name);
    }

    @Override
    public String @Nullable [] getParameterValues(String name) {
        mayReadParameters();
        return super.getParameterValues(name);
    }

    @Override
    public Map<String, String[]> getParameterMap() {
        mayReadParameters();
        return super.getParameterMap();
    }

    @Override
    public Enumeration<String> getParameterNames() {
        mayReadParameters();
        return super.getParameterNames();
    }

    private NeedsBodyException withheld() {
        bodyWithheld = true;
        return new NeedsBodyException();
    }

    @Override
    public Collection<Part> getParts() {
        throw withheld();
    }

    @Override
    public Part getPart(String name) {
        throw withheld();
    }

    @Override
    public ServletInputStream getInputStream() {
        throw withheld();
    }

    @Override
    public BufferedReader getReader() {
        throw withheld();
    }
}
