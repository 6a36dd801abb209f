package io.idempotence.server.servlet;

import jakarta.servlet.http.HttpServletRequest;
import java.security.Principal;
import java.util.Objects;
import java.util.function.Function;

/**
 * Whose ID it is: IDs of different scopes never meet, so that nobody is refused or answered with what belongs to another (promise P5).
 * Implementations are thread-safe and never return null; empty means that there is but one scope.
 */
@FunctionalInterface
public interface RequestScope extends Function<HttpServletRequest, String> {
    /**
     * The authenticated principal's name, if the container has one.
     *
     * @return the default
     */
    static RequestScope principal() {
        return request -> {
            Principal principal = request.getUserPrincipal();
            return principal == null ? "" : "principal:" + principal.getName();
        };
    }

    /**
     * A header's value, for example the tenant's. Only for a header that something in front sets or checks: a caller who can
     * choose it can choose whose IDs it meets.
     *
     * @param name the header; without it the request has the empty scope
     * @return the scope
     */
    static RequestScope header(String name) {
        Objects.requireNonNull(name, "name");
        return request -> {
            String value = request.getHeader(name);
            return value == null ? "" : "header:" + value;
        };
    }

    /**
     * Both together, for example tenant and principal.
     *
     * @param other the other one
     * @return a scope that is equal only if both are
     */
    default RequestScope and(RequestScope other) {
        Objects.requireNonNull(other, "other");
        return request -> {
            String first = apply(request);
            String second = other.apply(request);
            return first.isEmpty() && second.isEmpty() ? "" : first.length() + ":" + first + second;
        };
    }
}
