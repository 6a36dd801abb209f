package io.idempotence.server.servlet;

import io.idempotence.server.servlet.StoredResponse.StoredHeader;
import jakarta.servlet.http.HttpServletResponse;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** The headers that a handler sets, kept apart from those of the container and of filters in front. */
final class HandlerHeaders {
    private final List<String> keptNames;

    /** The earlier values of the headers that the handler has changed. */
    private final Map<String, List<String>> before = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);

    /** The kept headers at the time when the handler first ended with an error. */
    private Map<String, List<String>> atError = Map.of();

    /** The headers to store as they were when bytes began to leave; null before that, and after the handler has changed some. */
    private @Nullable List<StoredHeader> leaving;

    HandlerHeaders(List<String> keptNames) {
        this.keptNames = keptNames;
    }

    /**
     * Call this before the handler changes a header. Content-Type and Content-Length belong to the body, and are read when it is complete.
     */
    void changing(@Nullable String name, HttpServletResponse container) {
        changing();
        if (name != null && !isOfTheBody(name) && !before.containsKey(name)) {
            before.put(name, container.containsHeader(name) ? List.copyOf(container.getHeaders(name)) : List.of());
        }
    }

    /** Call this before the handler changes type or encoding. */
    void changing() {
        leaving = null;
    }

    /**
     * Saves the headers to store before the first bytes leave. The container may then compress them, and set headers that are not the
     * handler's.
     */
    void leaving(HttpServletResponse container) {
        if (leaving == null && !container.isCommitted()) {
            leaving = kept(container);
        }
    }

    private static boolean isOfTheBody(String name) {
        return name.equalsIgnoreCase("Content-Type") || name.equalsIgnoreCase("Content-Length");
    }

    /** Call this when the handler has ended with an error, before the error is passed to the container. */
    void atError(HttpServletResponse container) {
        if (atError.isEmpty()) {
            Map<String, List<String>> now = new HashMap<>();
            keptNames.forEach(name -> now.put(name, List.copyOf(container.getHeaders(name))));
            atError = now;
        }
    }

    /** Call this before the error page runs. Headers that the container has set for the page belong to the page. */
    void atErrorPage(HttpServletResponse container) {
        leaving = null;
        atError.forEach((name, values) -> {
            if (!values.equals(List.copyOf(container.getHeaders(name)))) {
                before.putIfAbsent(name, values);
            }
        });
    }

    /**
     * Returns the headers to store, as the handler left them. Headers of a filter in front are left out, because it sets them again for
     * each caller.
     */
    List<StoredHeader> kept(HttpServletResponse container) {
        if (leaving != null) {
            return leaving;
        }
        List<StoredHeader> headers = new ArrayList<>();
        String type = container.getContentType();
        if (type != null) {
            headers.add(new StoredHeader("Content-Type", type));
        }
        for (String name : keptNames) {
            if (before.containsKey(name)) {
                container.getHeaders(name).forEach(value -> headers.add(new StoredHeader(name, value)));
            }
        }
        return headers;
    }

    /** Resets an uncommitted response to its state before the handler. */
    void undo(HttpServletResponse container) {
        Map<String, List<String>> headers = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
        for (String name : container.getHeaderNames()) {
            headers.put(name, List.copyOf(container.getHeaders(name)));
        }
        headers.putAll(before);
        // These describe the body, which is dropped.
        headers.remove("Content-Type");
        headers.remove("Content-Length");
        container.reset();
        if (Wrappers.isOfUndertow(container)) {
            // Undertow keeps the charset, and would add it to the next type. Removing it sets the old type again.
            Wrappers.innermost(container).setCharacterEncoding((String) null);
            container.reset();
        }
        headers.forEach((name, values) -> {
            for (int i = 0; i < values.size(); i++) {
                if (i == 0) {
                    // A container may keep some of its own headers through the reset.
                    container.setHeader(name, values.get(i));
                } else {
                    container.addHeader(name, values.get(i));
                }
            }
        });
    }
}
