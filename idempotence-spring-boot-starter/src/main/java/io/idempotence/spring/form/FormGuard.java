package io.idempotence.spring.form;

import io.idempotence.server.servlet.IdempotenceFilter;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The last filter in front of the handler. A token promises that its form runs once, and only an idempotence filter keeps that promise: a
 * form with a token that none protects is refused.
 */
final class FormGuard implements Filter {
    private static final Logger LOG = LoggerFactory.getLogger(FormGuard.class);
    /** The request attribute of a form that may run, also in later dispatches. */
    private static final String PASSED = FormGuard.class.getName();

    private final FormTokens tokens;
    private final FormProblems problems;

    FormGuard(FormTokens tokens, FormProblems problems) {
        this.tokens = tokens;
        this.problems = problems;
    }

    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        if (request instanceof HttpServletRequest http
                && response instanceof HttpServletResponse target
                && FormTokens.idOf(http).isPresent()
                && !mayRun(http)) {
            LOG.error(
                    "A form with a token was posted to {} and refused, because no idempotence filter protects that request: a second"
                            + " click would run it again. Extend idempotence.server.paths, or the URL patterns of your own filter, or"
                            + " remove the token from the form",
                    http.getRequestURI());
            problems.write("not-protected", HttpServletResponse.SC_INTERNAL_SERVER_ERROR, http, target);
        } else {
            chain.doFilter(request, response);
        }
    }

    private boolean mayRun(HttpServletRequest request) {
        if (request.getAttribute(PASSED) != null) {
            return true;
        }
        boolean mayRun = IdempotenceFilter.execution(request).isPresent() || tokens.isLeftToHandler(request);
        if (mayRun) {
            request.setAttribute(PASSED, true);
        }
        return mayRun;
    }
}
