package io.idempotence.spring.method;

import io.idempotence.server.servlet.IdempotenceFilter;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.ApplicationContext;
import org.springframework.web.servlet.DispatcherServlet;

/** The handlers that the idempotence filters of an application cover, whoever registers them. */
final class FilterCoverage {
    private static final Logger LOG = LoggerFactory.getLogger(FilterCoverage.class);
    private static final Set<String> OURS = Set.of("idempotenceFilterRegistration");

    /** By the names of the beans. */
    private final Map<String, FilterRegistrationBean<?>> registrations = new TreeMap<>();
    /** Handlers that only disabled registrations cover. */
    private final Set<String> unprotected = new TreeSet<>();

    private final String servletPath;

    FilterCoverage(ApplicationContext context) {
        context.getBeansOfType(FilterRegistrationBean.class).forEach((name, registration) -> {
            if (registration.getFilter() instanceof IdempotenceFilter) {
                registrations.put(name, registration);
            }
        });
        String path = context.getEnvironment().getProperty("spring.mvc.servlet.path", "/");
        servletPath = path.equals("/") ? "" : path;
    }

    /** Checks that a filter covers the paths of a handler. */
    void check(HandlerOperation operation, OperationFaults faults) {
        for (String path : operation.paths()) {
            List<FilterRegistrationBean<?>> covering = registrations.values().stream()
                    .filter(registration -> covers(registration, servletPath + path))
                    .toList();
            if (covering.isEmpty()) {
                addFault(path, faults);
            } else if (covering.stream().noneMatch(FilterRegistrationBean::isEnabled)) {
                unprotected.add(operation.name());
            }
        }
    }

    private void addFault(String path, OperationFaults faults) {
        if (registrations.keySet().equals(OURS)) {
            faults.add(
                    "idempotence.server.paths does not cover " + path,
                    "Add a pattern for " + path + " to idempotence.server.paths.");
            return;
        }
        List<String> found = new ArrayList<>();
        registrations.forEach((name, registration) -> found.add("'" + name + "' is on "
                + Stream.concat(registration.getUrlPatterns().stream(), registration.getServletNames().stream())
                        .collect(Collectors.joining(", "))));
        faults.add(
                "no idempotence filter covers " + path + ": " + String.join("; ", found),
                "Add a URL pattern for " + path + " to '" + String.join("' or '", registrations.keySet())
                        + "', or register another IdempotenceFilterRegistrationBean.");
    }

    /** Warns of handlers whose filter is not registered. It may be part of a chain of Spring Security instead. */
    void warnOfDisabled() {
        if (!unprotected.isEmpty()) {
            LOG.warn(
                    "The registration of the idempotence filter of {} is disabled: they run unprotected unless the filter is applied"
                            + " elsewhere, such as in the chain of Spring Security. Enable the registration, or ignore this warning if it is",
                    unprotected);
        }
    }

    private static boolean covers(FilterRegistrationBean<?> registration, String path) {
        Collection<String> patterns = registration.getUrlPatterns();
        boolean isOfServlets = !registration.getServletNames().isEmpty()
                || !registration.getServletRegistrationBeans().isEmpty();
        return isOfDispatcherServlet(registration)
                // Without either, Spring Boot maps a filter to everything.
                || (patterns.isEmpty() && !isOfServlets)
                || patterns.stream().anyMatch(pattern -> covers(pattern, path));
    }

    private static boolean isOfDispatcherServlet(FilterRegistrationBean<?> registration) {
        return registration.getServletNames().contains("dispatcherServlet")
                || registration.getServletRegistrationBeans().stream()
                        .anyMatch(servlet -> servlet.getServlet() instanceof DispatcherServlet);
    }

    private static boolean covers(String pattern, String path) {
        if (pattern.endsWith("/*")) {
            String prefix = pattern.substring(0, pattern.length() - 2);
            return path.equals(prefix) || path.startsWith(prefix + "/");
        }
        return pattern.startsWith("*.")
                ? path.endsWith(pattern.substring(1))
                : path.equals(pattern) || path.equals(pattern + "/");
    }
}
