package io.idempotence.spring.method;

import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.server.servlet.RequestSettings;
import io.idempotence.spring.server.IdempotenceFilterRegistrationBean;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.EnumSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.boot.web.servlet.ServletRegistrationBean;
import org.springframework.context.ApplicationContext;
import org.springframework.web.bind.annotation.RequestMethod;
import org.springframework.web.servlet.DispatcherServlet;
import org.springframework.web.servlet.mvc.method.RequestMappingInfo;

/** The handlers that the idempotence filters of an application cover, however they are registered. */
final class FilterCoverage {
    static final Set<RequestMethod> UNSAFE =
            EnumSet.of(RequestMethod.POST, RequestMethod.PUT, RequestMethod.PATCH, RequestMethod.DELETE);

    private static final Logger LOG = LoggerFactory.getLogger(FilterCoverage.class);
    private static final String OURS = "idempotenceFilterRegistration";

    /** In the order of their chain, as far as they are mapped in the same way. */
    private final List<Registered> filters;
    /** The requests that reach the handlers. */
    private final List<Served> served;
    /** Handlers that only disabled registrations cover. */
    private final Set<String> unprotected = new TreeSet<>();

    /** A filter. One whose registration is disabled may be part of another chain. */
    private record Registered(String bean, FilterRegistrationBean<?> registration, IdempotenceFilter filter) {
        static Stream<Registered> of(String bean, FilterRegistrationBean<?> registration) {
            return registration.getFilter() instanceof IdempotenceFilter filter
                    ? Stream.of(new Registered(bean, registration, filter))
                    : Stream.of();
        }

        boolean covers(Served by, String path) {
            return coversByPattern(by, path) || isOf(by.servlet);
        }

        boolean coversByPattern(Served by, String path) {
            Collection<String> patterns = registration.getUrlPatterns();
            boolean isOfServlets = !registration.getServletNames().isEmpty()
                    || !registration.getServletRegistrationBeans().isEmpty();
            // Without either, Spring Boot maps a filter to everything.
            return (patterns.isEmpty() && !isOfServlets)
                    || patterns.stream().anyMatch(pattern -> covers(pattern, by.prefix + path));
        }

        private boolean covers(String pattern, String path) {
            if (pattern.endsWith("/*")) {
                String prefix = pattern.substring(0, pattern.length() - 2);
                return path.equals(prefix) || path.startsWith(prefix + "/");
            }
            if (pattern.startsWith("*.")) {
                return path.endsWith(pattern.substring(1));
            }
            // A container takes any other pattern literally. Our registration adds the one with a last slash.
            boolean isLiteral = pattern.indexOf('{') < 0 && pattern.indexOf('*') < 0;
            return isLiteral
                    && (path.equals(pattern)
                            || (registration instanceof IdempotenceFilterRegistrationBean
                                    && path.equals(pattern + "/")));
        }

        private boolean isOf(String servlet) {
            return registration.getServletNames().contains(servlet)
                    || registration.getServletRegistrationBeans().stream()
                            .anyMatch(bean -> bean.getServletName().equals(servlet));
        }

        @Override
        public String toString() {
            return "'" + bean + "' is on "
                    + Stream.concat(registration.getUrlPatterns().stream(), registration.getServletNames().stream())
                            .collect(Collectors.joining(", "));
        }
    }

    /** The requests below a prefix, which a DispatcherServlet serves. */
    private record Served(String servlet, String prefix) {
        /** Empty for a DispatcherServlet with another context, whose handler mappings cannot be seen at start. */
        static Stream<Served> of(ServletRegistrationBean<?> registration, ApplicationContext context) {
            return registration.isEnabled()
                            && registration.getServlet() instanceof DispatcherServlet servlet
                            && servlet.getWebApplicationContext() == context
                    ? registration.getUrlMappings().stream()
                            .filter(mapping -> mapping.equals("/") || mapping.endsWith("/*"))
                            .map(mapping -> new Served(
                                    registration.getServletName(), mapping.substring(0, mapping.lastIndexOf('/'))))
                    : Stream.of();
        }
    }

    /**
     * The settings that a filter has for requests of a handler.
     *
     * @param registration the bean that registers the filter
     * @param requests their method and path
     */
    record Configured(String registration, String requests, RequestSettings settings) {}

    FilterCoverage(ApplicationContext context) {
        filters = context.getBeansOfType(FilterRegistrationBean.class).entrySet().stream()
                .flatMap(bean -> Registered.of(bean.getKey(), bean.getValue()))
                // Of the same order, the first that is defined is the first in the chain.
                .sorted(Comparator.comparing((Registered one) -> one.registration.isMatchAfter())
                        .thenComparing(one -> one.registration.getOrder()))
                .toList();
        List<Served> all = context.getBeansOfType(ServletRegistrationBean.class).values().stream()
                .flatMap(registration -> Served.of(registration, context))
                .toList();
        served = all.isEmpty() ? List.of(new Served("dispatcherServlet", "")) : all;
    }

    static boolean isUnsafe(String method) {
        return UNSAFE.stream().anyMatch(unsafe -> unsafe.name().equals(method));
    }

    /**
     * Checks that a filter covers the paths of a handler, behind every servlet that serves it.
     *
     * @return what the filters that decide have for its requests
     */
    List<Configured> check(String handler, RequestMappingInfo mapping, OperationFaults faults) {
        List<Configured> configured = new ArrayList<>();
        for (Served by : served) {
            for (String path : mapping.getPatternValues()) {
                Optional<Registered> deciding = deciding(by, path);
                if (deciding.isEmpty()) {
                    addFault(by.prefix + path, faults);
                } else {
                    if (!deciding.get().registration.isEnabled()) {
                        unprotected.add(handler);
                    }
                    addConfigured(deciding.get(), mapping, by.prefix + path, configured);
                }
            }
        }
        return configured;
    }

    /** The filter that decides. Those that are mapped to patterns come before those of servlets (Servlet 6.0, section 6.2.4). */
    private Optional<Registered> deciding(Served by, String path) {
        return filters.stream()
                .filter(one -> one.covers(by, path))
                .min(Comparator.comparing((Registered one) -> !one.registration.isEnabled())
                        .thenComparing(one -> !one.coversByPattern(by, path)));
    }

    private static void addConfigured(
            Registered deciding, RequestMappingInfo mapping, String path, List<Configured> configured) {
        Set<RequestMethod> methods = mapping.getMethodsCondition().getMethods();
        for (RequestMethod method : methods.isEmpty() ? UNSAFE : methods) {
            if (UNSAFE.contains(method)) {
                configured.add(new Configured(
                        deciding.bean, method + " " + path, deciding.filter.settingsOf(method.name(), path)));
            }
        }
    }

    private void addFault(String path, OperationFaults faults) {
        List<String> beans = filters.stream().map(Registered::bean).sorted().toList();
        if (beans.equals(List.of(OURS))) {
            faults.add(
                    "idempotence.server.paths does not cover " + path,
                    "Add a pattern for " + path + " to idempotence.server.paths.");
            return;
        }
        faults.add(
                "no idempotence filter covers " + path + ": "
                        + filters.stream().map(Registered::toString).sorted().collect(Collectors.joining("; ")),
                "Add a URL pattern for " + path + " to '" + String.join("' or '", beans)
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
}
