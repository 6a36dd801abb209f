package io.idempotence.server.servlet;

import jakarta.servlet.http.HttpServletRequest;
import java.security.Principal;
import java.util.Collections;
import java.util.Objects;
import java.util.function.Function;

/**
 * The scope of a request: to whom its ID belongs. Equal IDs in different scopes are different IDs, so that no caller is refused because of
 * another's request, or gets its response (promise P5). Implementations are thread-safe and never return null. If all requests have one
 * scope, it is empty.
 */
@FunctionalInterface
public interface RequestScope extends Function<HttpServletRequest, String> {
    /** A scope for each authenticated principal, by name. A request without one has the empty scope. */
    static RequestScope principal() {
        return request -> {
            Principal principal = request.getUserPrincipal();
            return principal == null ? "" : "principal:" + principal.getName();
        };
    }

    /**
     * A scope for each value of a header, for example the tenant's. Use only a header that something in front sets or checks: a caller that
     * can choose it can choose whose IDs it gets. A request with several lines of the header, even equal ones, is refused as {@code
     * key-invalid}, by an {@link io.idempotence.IdempotenceException}: one of them may be the caller's.
     *
     * @param name the header; a request without it has the empty scope
     * @throws IllegalArgumentException if {@code name} is not the name of a header
     */
    static RequestScope header(String name) {
        Objects.requireNonNull(name, "name");
        if (!HeaderNames.isValid(name)) {
            // All callers would share one scope.
            throw new IllegalArgumentException(
                    "a scope expects the name of a header, such as X-Tenant, and got something else;"
                            + " separate several names with commas, or combine their scopes with and()");
        }
        return request -> {
            int lines = Collections.list(request.getHeaders(name)).size();
            if (lines > 1) {
                throw new AmbiguousScopeException(name, lines);
            }
            String value = request.getHeader(name);
            return value == null ? "" : "header:" + value;
        };
    }

    /**
     * Combines two scopes, for example tenant and principal.
     *
     * @param other the other one
     * @return a scope that is equal only if both are: the length of this one, a colon, this one, and the other one, such as {@code
     *     11:header:acmeprincipal:ann}. Empty if both are
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
