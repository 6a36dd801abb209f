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

/** The URL patterns and dispatches to which a filter is mapped in its application. */
final class FilterMapping {
    private static final Logger LOG = LoggerFactory.getLogger(IdempotenceFilter.class);

    /** Null if the application mapped the filter itself: the patterns are then unknown. */
    private volatile @Nullable List<UrlPattern> patterns;

    private volatile boolean seesRequestEnds;

    FilterRegistration.Dynamic install(
            Filter filter, ServletContext context, boolean isMatchAfter, String... urlPatterns) {
        String[] named = urlPatterns.length == 0 ? new String[] {"/*"} : urlPatterns;
        List<UrlPattern> covering = Stream.of(named).map(UrlPattern::ofMapping).toList();
        if (isInstalled()) {
            throw new IllegalStateException(
                    "this filter is installed already, and can be installed once; build another one for other settings,"
                            + " or pass all patterns to one call");
        }
        String name = "idempotence";
        for (int others = 1; context.getFilterRegistration(name) != null; others++) {
            name = "idempotence-" + (others + 1);
        }
        FilterRegistration.Dynamic registration = context.addFilter(name, filter);
        if (registration == null) {
            throw new IllegalStateException(
                    "the container already has this filter, and takes it once; build another one for other settings,"
                            + " or pass all patterns to one call");
        }
        patterns = covering;
        registration.setAsyncSupported(true);
        String[] mapped =
                Stream.of(named).flatMap(UrlPattern::mappings).distinct().toArray(String[]::new);
        registration.addMappingForUrlPatterns(EnumSet.of(DispatcherType.REQUEST), isMatchAfter, mapped);
        registration.addMappingForUrlPatterns(
                EnumSet.of(DispatcherType.ASYNC, DispatcherType.ERROR), isMatchAfter, "/*");
        addListener(context);
        return registration;
    }

    /** Adds ERROR dispatches to a mapping that the application made itself. */
    void completeByHand(FilterConfig filter) throws ServletException {
        if (isMock(filter)) {
            patterns = List.of(UrlPattern.ofMapping("/*"));
            return;
        }
        LOG.warn(
                "The application mapped the idempotence filter '{}' itself: responses that an asynchronous handler dispatches leave before they"
                        + " are recorded, and requests that a filter in front dispatches later are not protected; use"
                        + " IdempotenceFilter.install",
                filter.getFilterName());
        try {
            FilterRegistration registration = filter.getServletContext().getFilterRegistration(filter.getFilterName());
            registration.addMappingForUrlPatterns(EnumSet.of(DispatcherType.ERROR), true, "/*");
            // Undertow does not start listeners that are added after filters are initialised.
            // Every request would then fail.
            if (!filter.getServletContext().getClass().getName().startsWith("io.undertow.")) {
                addListener(filter.getServletContext());
            }
        } catch (RuntimeException e) {
            throw new ServletException(
                    "the container refused to map the idempotence filter '" + filter.getFilterName()
                            + "' to ERROR dispatches, so error pages would not be recorded as callers see them; install it"
                            + " with IdempotenceFilter.install(servletContext, idempotence, \"/payments/*\") before the application has"
                            + " started, in Spring Boot with the IdempotenceFilterRegistrationBean of the starter",
                    e);
        }
    }

    /** Whether there is no container: {@code MockMvc} passes each dispatch to the filters that cover it, and has no registrations. */
    private static boolean isMock(FilterConfig filter) {
        for (Class<?> type = filter.getServletContext().getClass(); type != null; type = type.getSuperclass()) {
            if (type.getName().equals("org.springframework.mock.web.MockServletContext")) {
                return true;
            }
        }
        return false;
    }

    private void addListener(ServletContext context) {
        context.addListener(new ProtectedRequest.Ends());
        seesRequestEnds = true;
    }

    /** Whether the container calls {@link ProtectedRequest.Ends}. */
    boolean seesRequestEnds() {
        return seesRequestEnds;
    }

    /** Whether the filter was installed by {@link #install}. Only then does it see every dispatch of its requests. */
    boolean isInstalled() {
        return patterns != null;
    }

    /**
     * Whether a pattern covers a path. False if the application mapped the filter itself.
     *
     * @param path the path that the caller used: a handler may dispatch into a protected path after it ran
     */
    boolean covers(String path) {
        List<UrlPattern> known = patterns;
        return known != null && known.stream().anyMatch(pattern -> pattern.covers(path));
    }
}
