package io.idempotence.server.servlet;

import io.idempotence.server.IdempotencePolicy;
import jakarta.servlet.http.HttpServletRequest;

/**
 * Requests that share a policy.
 *
 * @param method empty for all methods
 */
record Operation(String method, UrlPattern pattern, IdempotencePolicy policy) {
    boolean covers(HttpServletRequest request) {
        return (method.isEmpty() || method.equals(request.getMethod())) && pattern.covers(request);
    }
}
