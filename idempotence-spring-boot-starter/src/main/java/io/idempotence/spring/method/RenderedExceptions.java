package io.idempotence.spring.method;

import io.idempotence.server.ClaimedExecution;
import io.idempotence.server.servlet.IdempotenceFilter;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import org.jspecify.annotations.Nullable;
import org.springframework.core.Ordered;
import org.springframework.core.PriorityOrdered;
import org.springframework.web.HttpMediaTypeNotAcceptableException;
import org.springframework.web.context.request.async.AsyncRequestTimeoutException;
import org.springframework.web.servlet.HandlerExceptionResolver;
import org.springframework.web.servlet.ModelAndView;
import org.springframework.web.util.WebUtils;

/**
 * The exceptions that Spring MVC renders as responses. Each is reported to the execution of its request, whose policy may have a verdict
 * for it, and is left to the other resolvers. This resolver comes first, because resolvers behind the one that renders an exception are not
 * called. Thread-safe.
 */
final class RenderedExceptions implements HandlerExceptionResolver, PriorityOrdered {
    @Override
    public int getOrder() {
        return Ordered.HIGHEST_PRECEDENCE;
    }

    @Override
    public @Nullable ModelAndView resolveException(
            HttpServletRequest request, HttpServletResponse response, @Nullable Object handler, Exception exception) {
        // An included handler renders only a part of the response. Once a response was sent, nothing more is rendered.
        if (!WebUtils.isIncludeRequest(request)
                && !response.isCommitted()
                && !isOfSpring(exception)
                && IdempotenceFilter.execution(request).orElse(null) instanceof ClaimedExecution execution) {
            execution.rendered(exception);
        }
        return null;
    }

    /** Whether Spring MVC made the exception while the handler still runs, or after it has returned. The status then decides, not the exception. */
    private static boolean isOfSpring(Exception exception) {
        return exception instanceof AsyncRequestTimeoutException
                || exception instanceof HttpMediaTypeNotAcceptableException;
    }
}
