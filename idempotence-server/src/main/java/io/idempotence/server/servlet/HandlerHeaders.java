package io.idempotence.server.servlet;

import jakarta.servlet.http.HttpServletResponse;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** Tells the headers that a handler sets from those of the container and of filters in front. */
final class HandlerHeaders {
    private final List<String> keptNames;

    /** The values from before the handler, of those headers that it has changed. */
    private final Map<String, List<String>> before = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);

    /** The kept headers when the handler ended with an error. */
    private final Map<String, List<String>> atError = new HashMap<>();

    HandlerHeaders(List<String> keptNames) {
        this.keptNames = keptNames;
    }

    /** To be called before the handler changes a header. Type and length belong to the body: they are asked for when it is there. */
    void changing(@Nullable String name, HttpServletResponse container) {
        if (name != null && !isOfTheBody(name) && !before.containsKey(name)) {
            before.put(name, List.copyOf(container.getHeaders(name)));
        }
    }

    private static boolean isOfTheBody(String name) {
        return name.equalsIgnoreCase("Content-Type") || name.equalsIgnoreCase("Content-Length");
    }

    /** To be called when the handler has ended with an error, and before the container hears of it. */
    void atError(HttpServletResponse container) {
        keptNames.forEach(name -> atError.putIfAbsent(name, List.copyOf(container.getHeaders(name))));
    }

    /** To be called before the page: what a container has set for it belongs to it. */
    void atErrorPage(HttpServletResponse container) {
        atError.forEach((name, values) -> {
            if (!values.equals(List.copyOf(container.getHeaders(name)))) {
                before.putIfAbsent(name, values);
            }
        });
    }

    /** What is kept of the headers as they are now. What a filter in front has set, it sets again for each caller. */
    List<StoredResponse.Header> kept(HttpServletResponse container) {
        List<StoredResponse.Header> headers = new ArrayList<>();
        String type = container.getContentType();
        if (type != null) {
            headers.add(new StoredResponse.Header("Content-Type", type));
        }
        for (String name : keptNames) {
            if (before.containsKey(name)) {
                container.getHeaders(name).forEach(value -> headers.add(new StoredResponse.Header(name, value)));
            }
        }
        return headers;
    }

    /** Resets a response that is not committed to what it was before the handler. */
    void undo(HttpServletResponse container) {
        Map<String, List<String>> headers = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
        for (String name : container.getHeaderNames()) {
            headers.put(name, List.copyOf(container.getHeaders(name)));
        }
        headers.putAll(before);
        // Their body is thrown away.
        headers.remove("Content-Type");
        headers.remove("Content-Length");
        container.reset();
        headers.forEach((name, values) -> {
            for (int i = 0; i < values.size(); i++) {
                if (i == 0) {
                    // A container may have kept some of its own through the reset.
                    container.setHeader(name, values.get(i));
                } else {
                    container.addHeader(name, values.get(i));
                }
            }
        });
    }
}
