package io.idempotence.server.servlet;

import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterConfig;
import jakarta.servlet.FilterRegistration;
import jakarta.servlet.ServletContext;
import jakarta.servlet.ServletException;
import java.util.EnumSet;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What a filter is mapped to in its application. */
final class FilterMapping {
    private static final Logger LOG = LoggerFactory.getLogger(FilterMapping.class);

    /** Null if the application has mapped the filter itself: it cannot be told to what. */
    private volatile @Nullable List<UrlPattern> patterns;

    private volatile boolean seesRequestEnds;

    FilterRegistration.Dynamic install(Filter filter, ServletContext context, String... urlPatterns) {
        String[] named = urlPatterns.length == 0 ? new String[] {"/*"} : urlPatterns;
        List<UrlPattern> covering = Stream.of(named).map(UrlPattern::ofMapping).toList();
        if (isInstalled()) {
            throw new IllegalStateException(
                    "this filter is installed already: build one more for other settings, or name all patterns at once");
        }
        String name = "idempotence";
        for (int others = 1; context.getFilterRegistration(name) != null; others++) {
            name = "idempotence-" + (others + 1);
        }
        FilterRegistration.Dynamic registration = context.addFilter(name, filter);
        if (registration == null) {
            throw new IllegalStateException(
                    "the container has this filter already: build one more for other settings, or name all patterns at once");
        }
        patterns = covering;
        registration.setAsyncSupported(true);
        String[] mapped =
                Stream.of(named).flatMap(UrlPattern::mappings).distinct().toArray(String[]::new);
        registration.addMappingForUrlPatterns(EnumSet.of(DispatcherType.REQUEST), true, mapped);
        registration.addMappingForUrlPatterns(EnumSet.of(DispatcherType.ASYNC, DispatcherType.ERROR), true, "/*");
        addListener(context);
        return registration;
    }

    /** Adds the ERROR dispatches to what the application itself has mapped the filter to. */
    void completeByHand(FilterConfig filter) throws ServletException {
        LOG.warn(
                "The idempotence filter '{}' is mapped by the application: what an asynchronous handler dispatches leaves before it is"
                        + " recorded, and what a filter in front dispatches later is not protected; use IdempotenceFilter.install",
                filter.getFilterName());
        try {
            FilterRegistration registration = filter.getServletContext().getFilterRegistration(filter.getFilterName());
            registration.addMappingForUrlPatterns(EnumSet.of(DispatcherType.ERROR), true, "/*");
            // Undertow does not start listeners that are added once filters are initialised, and every request would
            // fail.
            if (!filter.getServletContext().getClass().getName().startsWith("io.undertow.")) {
                addListener(filter.getServletContext());
            }
        } catch (RuntimeException e) {
            throw new ServletException(
                    "the container does not let the idempotence filter '" + filter.getFilterName()
                            + "' map itself to ERROR dispatches, without which error pages are not replayed as they were; register it"
                            + " with IdempotenceFilter.install(servletContext, idempotence, \"/payments/*\") before the application has"
                            + " started, in Spring Boot from a ServletContextInitializer bean instead of a FilterRegistrationBean",
                    e);
        }
    }

    private void addListener(ServletContext context) {
        context.addListener(new RequestEnds());
        seesRequestEnds = true;
    }

    /** Whether {@link RequestEnds} are seen. */
    boolean seesRequestEnds() {
        return seesRequestEnds;
    }

    /** Whether the filter was installed by {@link #install}. Only then does it see every dispatch of its requests. */
    boolean isInstalled() {
        return patterns != null;
    }

    /**
     * Whether a pattern covers a path. False if the application itself has mapped the filter.
     *
     * @param path where the caller sent the request: a handler may dispatch it to a path of ours after it ran
     */
    boolean covers(String path) {
        List<UrlPattern> known = patterns;
        return known != null && known.stream().anyMatch(pattern -> pattern.covers(path));
    }
}
