package io.idempotence.spring.form;

import io.idempotence.IdempotenceId;
import io.idempotence.http.IdempotenceHeaders;
import io.idempotence.server.servlet.RefusalWriter;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpServletResponseWrapper;
import java.io.IOException;
import java.time.Duration;
import java.util.Collections;
import java.util.Enumeration;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The filter in front of the idempotence filter that turns the token of a submitted form into an {@code Idempotency-Key}, and refusals into
 * pages. A form without a token passes as it is, and so does a request with an {@code Idempotency-Key} of its own.
 */
final class FormTokenFilter implements Filter {
    private static final Logger LOG = LoggerFactory.getLogger(FormTokenFilter.class);
    private static final Set<String> SAFE_METHODS = Set.of("GET", "HEAD", "OPTIONS", "TRACE");
    /** Headers that browsers send with a form, and programs do not. */
    private static final List<String> FROM_BROWSERS = List.of("Origin", "Sec-Fetch-Mode");

    private final FormTokens tokens;
    private final FormProblems problems;
    private final String wait;
    private final boolean springParsesUploads;

    /** @param springParsesUploads whether Spring MVC parses each upload before its handler runs, and so refuses one that is too large */
    FormTokenFilter(FormTokens tokens, FormProblems problems, Duration maxWait, boolean springParsesUploads) {
        this.springParsesUploads = springParsesUploads;
        this.tokens = tokens;
        this.problems = problems;
        this.wait = "wait=" + maxWait.toSeconds();
    }

    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        if (request instanceof HttpServletRequest http) {
            // Pages that are shown instead of what was asked for may have forms, too.
            tokens.offer(http);
            if (request.getDispatcherType() == DispatcherType.REQUEST
                    && response instanceof HttpServletResponse target) {
                doFilter(http, target, chain);
                return;
            }
        }
        chain.doFilter(request, response);
    }

    private void doFilter(HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        if (!isForm(request) || hasId(request)) {
            chain.doFilter(request, response);
            return;
        }
        String[] submitted = mayHaveToken(request) ? submitted(request) : null;
        if (submitted == null) {
            chain.doFilter(request, acceptsHtml(request) ? new PageResponse(request, response) : response);
            return;
        }
        FormTokens.Check check = submitted.length == 1 ? tokens.check(request, submitted[0]) : severalTokens(request);
        if (check instanceof FormTokens.Check.Accepted accepted) {
            chain.doFilter(new SubmittedForm(request, accepted.id()), new PageResponse(request, response));
        } else {
            problems.write(check instanceof FormTokens.Check.Expired ? "expired" : "not-valid", 403, request, response);
        }
    }

    /**
     * The tokens of a form. An upload that the container does not parse, because it is too large, has none: Spring MVC gets the exception
     * again, and gives it to the application's error handling before the handler runs.
     */
    private String @Nullable [] submitted(HttpServletRequest request) {
        try {
            return request.getParameterValues(FormTokens.PARAMETER);
        } catch (RuntimeException e) {
            if (springParsesUploads && isMultipart(request) && isThrownAgain(request)) {
                return null;
            }
            throw e;
        }
    }

    private static boolean isThrownAgain(HttpServletRequest request) {
        try {
            request.getParameterValues(FormTokens.PARAMETER);
            return false;
        } catch (RuntimeException again) {
            return true;
        }
    }

    private static FormTokens.Check severalTokens(HttpServletRequest request) {
        LOG.warn(
                "A form posted to {} has several fields {}; expected one. Use idempotence:protect or the field, not both",
                request.getRequestURI(),
                FormTokens.PARAMETER);
        return new FormTokens.Check.Foreign();
    }

    /** Whether the request has an ID. A filter in front may have added one by overriding {@code getHeader} or {@code getHeaders} alone. */
    private static boolean hasId(HttpServletRequest request) {
        return request.getHeader(IdempotenceHeaders.IDEMPOTENCY_KEY) != null
                || request.getHeaders(IdempotenceHeaders.IDEMPOTENCY_KEY).hasMoreElements();
    }

    private static boolean isForm(HttpServletRequest request) {
        return !SAFE_METHODS.contains(request.getMethod())
                && (hasType(request, "application/x-www-form-urlencoded") || isMultipart(request));
    }

    private static boolean isMultipart(HttpServletRequest request) {
        return hasType(request, "multipart/form-data");
    }

    private static boolean hasType(HttpServletRequest request, String type) {
        String found = request.getContentType();
        return found != null && found.strip().toLowerCase(Locale.ROOT).startsWith(type);
    }

    /**
     * Whether the request comes from a browser. To look for the token of any other would take away the body that its handler may read, for
     * example to check a signature. A session that is over counts, and so does a lost cookie: their forms must be refused, not run.
     */
    private boolean mayHaveToken(HttpServletRequest request) {
        return request.getRequestedSessionId() != null
                || tokens.hasIssued(request)
                || FROM_BROWSERS.stream().anyMatch(name -> request.getHeader(name) != null);
    }

    private static boolean acceptsHtml(HttpServletRequest request) {
        String accept = request.getHeader("Accept");
        return accept != null && accept.contains("text/html");
    }

    /** A submitted form, with the headers that a client half would send. */
    private final class SubmittedForm extends HttpServletRequestWrapper {
        private final Map<String, String> added = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);

        SubmittedForm(HttpServletRequest request, IdempotenceId id) {
            super(request);
            added.put(IdempotenceHeaders.IDEMPOTENCY_KEY, '"' + id.value() + '"');
            added.put(IdempotenceHeaders.PREFER, wait);
        }

        @Override
        public String getHeader(String name) {
            String value = added.get(name);
            return value == null ? super.getHeader(name) : value;
        }

        @Override
        public Enumeration<String> getHeaders(String name) {
            String value = added.get(name);
            return value == null ? super.getHeaders(name) : Collections.enumeration(Set.of(value));
        }

        @Override
        public Enumeration<String> getHeaderNames() {
            Set<String> names = new LinkedHashSet<>(Collections.list(super.getHeaderNames()));
            names.addAll(added.keySet());
            return Collections.enumeration(names);
        }
    }

    /** The response for a person. */
    private final class PageResponse extends HttpServletResponseWrapper implements RefusalWriter {
        private final HttpServletRequest request;

        PageResponse(HttpServletRequest request, HttpServletResponse response) {
            super(response);
            this.request = request;
        }

        @Override
        public void writeRefusal(int status, String code) throws IOException {
            problems.write(code, status, request, (HttpServletResponse) getResponse());
        }
    }
}
