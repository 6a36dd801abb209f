package io.idempotence.spring.method;

import io.idempotence.server.servlet.IdempotenceFilter;
import jakarta.servlet.RequestDispatcher;
import jakarta.servlet.ServletContext;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import org.springframework.web.servlet.HandlerInterceptor;

/**
 * The guard of handlers with {@code @Idempotent}: a request that no idempotence filter covered fails before its handler runs. The check at
 * start compares patterns as they are written. A mapping may match more than that, and a forward does not pass the filters. Thread-safe.
 */
final class CoverageGuard implements HandlerInterceptor {
    private final HandlerOperations operations;

    CoverageGuard(HandlerOperations operations) {
        this.operations = operations;
    }

    @Override
    public boolean preHandle(HttpServletRequest request, HttpServletResponse response, Object handler) {
        if (operations.isUncovered(request, handler) && hasFilter(request.getServletContext())) {
            Object forwardedFrom = request.getAttribute(RequestDispatcher.FORWARD_REQUEST_URI);
            throw new IllegalStateException(handler
                    + " was not run: it has @Idempotent, and no idempotence filter covered "
                    + request.getMethod() + " " + (forwardedFrom == null ? request.getRequestURI() : forwardedFrom)
                    + ". URL patterns of filters are case-sensitive, and a forward does not pass them again. Protect"
                    + " more paths, for example all with idempotence.server.paths=/*, or correct the request");
        }
        return true;
    }

    /** Without one, the application was warned at start, or {@code MockMvc} runs a test without filters. */
    private static boolean hasFilter(ServletContext context) {
        return context.getFilterRegistrations().values().stream()
                .anyMatch(one -> IdempotenceFilter.class.getName().equals(one.getClassName()));
    }
}
