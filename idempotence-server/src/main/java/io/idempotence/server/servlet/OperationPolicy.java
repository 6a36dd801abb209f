package io.idempotence.server.servlet;

import io.idempotence.server.IdempotencePolicy;

/**
 * Requests that share a policy.
 *
 * @param method empty for all methods
 */
record OperationPolicy(String method, UrlPattern pattern, IdempotencePolicy policy) {
    boolean covers(String requestMethod, String path) {
        return (method.isEmpty() || method.equals(requestMethod)) && pattern.covers(path);
    }
}
