package io.idempotence.server.servlet;

import jakarta.servlet.AsyncContext;
import jakarta.servlet.http.HttpServletRequest;
import org.jspecify.annotations.Nullable;

/**
 * Where a caller sent its request. In an ASYNC dispatch the request names the path that it is dispatched to, and the one of the
 * caller is in its attributes (Jakarta Servlet 6, section 9.7.2), unless it is dispatched to where it came from.
 */
final class OriginalPath {
    private OriginalPath() {}

    /** With the context path, and encoded as the caller did. */
    static String uri(HttpServletRequest request) {
        String uri = (String) request.getAttribute(AsyncContext.ASYNC_REQUEST_URI);
        return uri == null ? request.getRequestURI() : uri;
    }

    static @Nullable String query(HttpServletRequest request) {
        return isElsewhere(request)
                ? (String) request.getAttribute(AsyncContext.ASYNC_QUERY_STRING)
                : request.getQueryString();
    }

    /** Relative to the context and decoded: the path as URL patterns see it. */
    static String inContext(HttpServletRequest request) {
        return isElsewhere(request)
                ? joined((String) request.getAttribute(AsyncContext.ASYNC_SERVLET_PATH), (String)
                        request.getAttribute(AsyncContext.ASYNC_PATH_INFO))
                : joined(request.getServletPath(), request.getPathInfo());
    }

    /** A query or path info may well be absent, a URI never is. */
    private static boolean isElsewhere(HttpServletRequest request) {
        return request.getAttribute(AsyncContext.ASYNC_REQUEST_URI) != null;
    }

    private static String joined(@Nullable String servletPath, @Nullable String pathInfo) {
        return (servletPath == null ? "" : servletPath) + (pathInfo == null ? "" : pathInfo);
    }
}
