package io.idempotence.server.servlet;

import jakarta.servlet.AsyncContext;
import jakarta.servlet.http.HttpServletRequest;
import org.jspecify.annotations.Nullable;

/**
 * The path to which a caller sent its request. In an ASYNC dispatch, the request has the path that it is dispatched to, and the caller's
 * path is in its attributes (Jakarta Servlet 6, section 9.7.2), unless it is dispatched to the path where it came from.
 *
 * @param uri the path with the context path, encoded as the caller sent it
 */
record OriginalPath(String uri, @Nullable String query) {
    static OriginalPath of(HttpServletRequest request) {
        String original = originalUri(request);
        return original == null
                ? new OriginalPath(request.getRequestURI(), request.getQueryString())
                : new OriginalPath(original, (String) request.getAttribute(AsyncContext.ASYNC_QUERY_STRING));
    }

    /** The path relative to the context and decoded, as URL patterns match it. */
    static String inContext(HttpServletRequest request) {
        return originalUri(request) != null
                ? joined((String) request.getAttribute(AsyncContext.ASYNC_SERVLET_PATH), (String)
                        request.getAttribute(AsyncContext.ASYNC_PATH_INFO))
                : joined(request.getServletPath(), request.getPathInfo());
    }

    /** The caller's URI if the request is dispatched to another path; otherwise null. A query or path info may be absent, a URI never is. */
    private static @Nullable String originalUri(HttpServletRequest request) {
        return (String) request.getAttribute(AsyncContext.ASYNC_REQUEST_URI);
    }

    private static String joined(@Nullable String servletPath, @Nullable String pathInfo) {
        return (servletPath == null ? "" : servletPath) + (pathInfo == null ? "" : pathInfo);
    }
}
