package io.idempotence.server.servlet;

/**
 * The settings of the requests that a method and a URL pattern cover.
 *
 * @param method empty for all methods
 */
record OperationPolicy(String method, UrlPattern pattern, PolicySettings settings) {
    boolean covers(String requestMethod, String path) {
        return (method.isEmpty() || method.equals(requestMethod)) && pattern.covers(path);
    }
}
