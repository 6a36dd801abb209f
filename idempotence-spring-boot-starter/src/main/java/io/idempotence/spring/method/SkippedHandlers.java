package io.idempotence.spring.method;

import io.idempotence.server.ClaimedExecution;
import io.idempotence.server.servlet.IdempotenceFilter;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.RequestDispatcher;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import org.jspecify.annotations.Nullable;
import org.springframework.web.servlet.DispatcherServlet;
import org.springframework.web.servlet.HandlerInterceptor;
import org.springframework.web.servlet.ModelAndView;

/**
 * The handlers that do not run because an interceptor behind this one responds in their place. Each is noted at the execution of its
 * request. Thread-safe.
 */
final class SkippedHandlers implements HandlerInterceptor {
    /** The request attribute of a handler that has returned. */
    private static final String RETURNED = SkippedHandlers.class.getName() + ".returned";

    @Override
    public void postHandle(
            HttpServletRequest request, HttpServletResponse response, Object handler, @Nullable ModelAndView view) {
        request.setAttribute(RETURNED, true);
    }

    /** Called without {@link #postHandle} and without an exception only if an interceptor has ended the request. */
    @Override
    public void afterCompletion(
            HttpServletRequest request, HttpServletResponse response, Object handler, @Nullable Exception failure) {
        boolean hasFailed = failure != null
                || request.getAttribute(DispatcherServlet.EXCEPTION_ATTRIBUTE) != null
                || request.getAttribute(RequestDispatcher.ERROR_EXCEPTION) != null;
        // Other dispatches may come from a handler that runs, or has run.
        if (!hasFailed
                && request.getDispatcherType() == DispatcherType.REQUEST
                && request.getAttribute(RETURNED) == null
                && !request.isAsyncStarted()
                && IdempotenceFilter.execution(request).orElse(null) instanceof ClaimedExecution execution) {
            execution.handlerSkipped();
        }
    }
}
