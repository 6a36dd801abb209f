package io.idempotence.server.servlet;

import jakarta.servlet.AsyncContext;
import jakarta.servlet.http.HttpServletRequest;
import org.jspecify.annotations.Nullable;

/**
 * The path to which a caller sent its request. In an ASYNC dispatch, the request has the path that it is dispatched to, and the caller's
 * path is in its attributes (Jakarta Servlet 6, section 9.7.2), unless it is dispatched to the path where it came from.
 */
final class OriginalPath {
    private OriginalPath() {}

    /** The path with the context path, encoded as the caller sent it. */
    static String uri(HttpServletRequest request) {
        String uri = (String) request.getAttribute(AsyncContext.ASYNC_REQUEST_URI);
        return uri == null ? request.getRequestURI() : uri;
    }

    static @Nullable String query(HttpServletRequest request) {
        return isElsewhere(request)
                ? (String) request.getAttribute(AsyncContext.ASYNC_QUERY_STRING)
                : request.getQueryString();
    }

    /** The path relative to the context and decoded, as URL patterns match it. */
    static String inContext(HttpServletRequest request) {
        return isElsewhere(request)
                ? joined((String) request.getAttribute(AsyncContext.ASYNC_SERVLET_PATH), (String)
                        request.getAttribute(AsyncContext.ASYNC_PATH_INFO))
                : joined(request.getServletPath(), request.getPathInfo());
    }

    /** Whether the request is dispatched to another path. A query or path info may be absent, a URI never is. */
    private static boolean isElsewhere(HttpServletRequest request) {
        return request.getAttribute(AsyncContext.ASYNC_REQUEST_URI) != null;
    }

    private static String joined(@Nullable String servletPath, @Nullable String pathInfo) {
        return (servletPath == null ? "" : servletPath) + (pathInfo == null ? "" : pathInfo);
    }
}
