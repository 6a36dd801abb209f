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
 * The exceptions that Spring MVC renders as responses. Each is noted at the execution of its request, whose policy may have a verdict for
 * it, and left to the other resolvers. First of all resolvers, because those behind the one that renders it are not asked. Thread-safe.
 */
final class RenderedExceptions implements HandlerExceptionResolver, PriorityOrdered {
    @Override
    public int getOrder() {
        return Ordered.HIGHEST_PRECEDENCE;
    }

    @Override
    public @Nullable ModelAndView resolveException(
            HttpServletRequest request, HttpServletResponse response, @Nullable Object handler, Exception exception) {
        // An included handler renders a part of the response only. Of a response that was sent, nothing is rendered any
        // more.
        if (!WebUtils.isIncludeRequest(request)
                && !response.isCommitted()
                && !isOfSpring(exception)
                && IdempotenceFilter.execution(request).orElse(null) instanceof ClaimedExecution execution) {
            execution.rendered(exception);
        }
        return null;
    }

    /** Whether Spring MVC made an exception while the handler still runs, or after it has returned. The status decides then. */
    private static boolean isOfSpring(Exception exception) {
        return exception instanceof AsyncRequestTimeoutException
                || exception instanceof HttpMediaTypeNotAcceptableException;
    }
}
