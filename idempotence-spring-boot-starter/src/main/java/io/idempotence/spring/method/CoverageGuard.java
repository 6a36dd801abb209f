package io.idempotence.spring.method;

import io.idempotence.server.servlet.IdempotenceFilter;
import jakarta.servlet.RequestDispatcher;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletRequestWrapper;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.web.servlet.HandlerInterceptor;

/**
 * The guard of handlers with {@code @Idempotent}: a request that would run one unprotected gets a 500. The check at start compares patterns
 * as they are written. A mapping may match more than that, and a forward does not pass the filters. Thread-safe.
 */
final class CoverageGuard implements HandlerInterceptor {
    private static final Logger LOG = LoggerFactory.getLogger(CoverageGuard.class);

    private final HandlerOperations operations;

    CoverageGuard(HandlerOperations operations) {
        this.operations = operations;
    }

    /** Not with an exception, which the application may render as an error of the caller. */
    @Override
    public boolean preHandle(HttpServletRequest request, HttpServletResponse response, Object handler)
            throws IOException {
        if (!operations.isUncovered(request, handler) || !hasFilter(request) || isMock(request)) {
            return true;
        }
        Object forwardedFrom = request.getAttribute(RequestDispatcher.FORWARD_REQUEST_URI);
        if (forwardedFrom == null) {
            LOG.error(
                    "{} was not run: it has @Idempotent, and no idempotence filter covered {} {}. URL patterns of filters are"
                            + " case-sensitive. Protect more paths, for example all with idempotence.server.paths=/*",
                    handler,
                    request.getMethod(),
                    request.getRequestURI());
        } else {
            LOG.error(
                    "{} was not run: it has @Idempotent, and no idempotence filter covered {} {}, which was forwarded to it by the"
                            + " path {}. A forward does not pass the filters again: have callers use that path",
                    handler,
                    request.getMethod(),
                    forwardedFrom,
                    request.getRequestURI());
        }
        response.sendError(HttpServletResponse.SC_INTERNAL_SERVER_ERROR);
        return false;
    }

    /** Without one, the application was warned at start. */
    private static boolean hasFilter(HttpServletRequest request) {
        return request.getServletContext().getFilterRegistrations().values().stream()
                .anyMatch(one -> IdempotenceFilter.class.getName().equals(one.getClassName()));
    }

    /** Whether {@code MockMvc} makes the request, perhaps without filters. */
    private static boolean isMock(HttpServletRequest request) {
        ServletRequest innermost = request;
        while (innermost instanceof ServletRequestWrapper wrapper) {
            innermost = wrapper.getRequest();
        }
        return innermost.getClass().getName().startsWith("org.springframework.mock.");
    }
}
