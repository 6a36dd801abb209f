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

/** A view of a request that a look-up of its handler may use: it leaves the attributes and the body of the request as they are. */
final class UntouchedRequest extends HttpServletRequestWrapper {
    /** An attribute without a value is removed. */
    private final Map<String, Optional<Object>> changed = new HashMap<>();

    UntouchedRequest(HttpServletRequest request) {
        super(request);
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
        if (type != null) {
            String lower = type.toLowerCase(Locale.ROOT);
            if (lower.startsWith("application/x-www-form-urlencoded") || lower.startsWith("multipart/")) {
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

    @Override
    public Collection<Part> getParts() {
        throw new NeedsBodyException();
    }

    @Override
    public Part getPart(String name) {
        throw new NeedsBodyException();
    }

    @Override
    public ServletInputStream getInputStream() {
        throw new NeedsBodyException();
    }

    @Override
    public BufferedReader getReader() {
        throw new NeedsBodyException();
    }
}
