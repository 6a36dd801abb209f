package io.idempotence.it.matrix;

import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.EnumSet;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.springframework.session.MapSession;
import org.springframework.session.MapSessionRepository;
import org.springframework.session.web.http.SessionRepositoryFilter;
import org.springframework.web.filter.OncePerRequestFilter;
import org.springframework.web.filter.ShallowEtagHeaderFilter;
import org.springframework.web.util.ContentCachingResponseWrapper;

/** A filter that shares a chain with ours, mapped as Spring Boot maps it. */
enum Neighbour {
    NONE("none", Neighbour::passingOn),
    ETAG("ETag", ShallowEtagHeaderFilter::new),
    BUFFER("buffering", Neighbour::buffering),
    BUFFER_REQUEST("buffering REQUEST", BufferingOnce::new),
    GZIP("compression", GzipFilter::new),
    SESSION(
            "Spring Session",
            () -> new SessionRepositoryFilter<MapSession>(new MapSessionRepository(new ConcurrentHashMap<>()))),
    SECURITY("Spring Security", SpringSecurity::filter),
    CONTAINER_GZIP("container's compression", Neighbour::passingOn);

    private final String title;
    private final Supplier<Filter> filter;

    Neighbour(String title, Supplier<Filter> filter) {
        this.title = title;
        this.filter = filter;
    }

    String title() {
        return title;
    }

    Filter filter() {
        return filter.get();
    }

    Set<DispatcherType> dispatcherTypes() {
        return EnumSet.allOf(DispatcherType.class);
    }

    /** What a caller sends because of this filter. */
    String requestHeaders() {
        return switch (this) {
            case GZIP, CONTAINER_GZIP -> "Accept-Encoding: gzip\r\n";
            case SESSION -> HandlerKind.SESSION_HEADER + ": yes\r\n";
            case SECURITY -> "Authorization: Basic " + SpringSecurity.CREDENTIALS + "\r\n";
            default -> "";
        };
    }

    private static Filter passingOn() {
        return (request, response, chain) -> chain.doFilter(request, response);
    }

    /** Logs bodies, say. */
    private static Filter buffering() {
        return (request, response, chain) -> {
            ContentCachingResponseWrapper wrapper = new ContentCachingResponseWrapper((HttpServletResponse) response);
            try {
                chain.doFilter(request, wrapper);
            } finally {
                wrapper.copyBodyToResponse();
            }
        };
    }

    /** The logging filter that many applications have: Spring does not call it in ASYNC and ERROR dispatches. */
    private static final class BufferingOnce extends OncePerRequestFilter {
        @Override
        protected void doFilterInternal(HttpServletRequest request, HttpServletResponse response, FilterChain chain)
                throws ServletException, IOException {
            ContentCachingResponseWrapper wrapper = new ContentCachingResponseWrapper(response);
            try {
                chain.doFilter(request, wrapper);
            } finally {
                wrapper.copyBodyToResponse();
            }
        }
    }
}
