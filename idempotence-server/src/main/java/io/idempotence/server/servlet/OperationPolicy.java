package io.idempotence.server.servlet;

import io.idempotence.server.IdempotencePolicy;

/**
 * The policy of the requests that a method and a URL pattern cover.
 *
 * @param method empty for all methods
 */
record OperationPolicy(String method, UrlPattern pattern, IdempotencePolicy policy) {
    boolean covers(String requestMethod, String path) {
        return (method.isEmpty() || method.equals(requestMethod)) && pattern.covers(path);
    }
}
