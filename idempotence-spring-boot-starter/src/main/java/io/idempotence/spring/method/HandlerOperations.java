package io.idempotence.spring.method;

import io.idempotence.Idempotent;
import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.server.servlet.RequestSettings;
import jakarta.servlet.ServletContext;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletRequest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.BeanFactoryUtils;
import org.springframework.context.ApplicationContext;
import org.springframework.core.MethodClassKey;
import org.springframework.core.annotation.AnnotationAwareOrderComparator;
import org.springframework.http.server.PathContainer;
import org.springframework.web.ErrorResponse;
import org.springframework.web.bind.annotation.RequestMethod;
import org.springframework.web.context.WebApplicationContext;
import org.springframework.web.method.HandlerMethod;
import org.springframework.web.servlet.DispatcherServlet;
import org.springframework.web.servlet.HandlerExecutionChain;
import org.springframework.web.servlet.HandlerMapping;
import org.springframework.web.servlet.mvc.condition.PathPatternsRequestCondition;
import org.springframework.web.servlet.mvc.method.RequestMappingInfo;
import org.springframework.web.servlet.mvc.method.RequestMappingInfoHandlerMapping;
import org.springframework.web.util.ServletRequestPathUtils;

/** The handlers with {@code @Idempotent}. Chooses the settings of each request, behind every filter of the application. Thread-safe. */
final class HandlerOperations {
    /** The package of the exceptions about API versions, which exist from Spring 7 on. */
    private static final String VERSIONS = "org.springframework.web.accept";
    /** The attribute of a request that a filter has covered. */
    private static final String COVERED = HandlerOperations.class.getName() + ".covered";

    private final ApplicationContext context;
    private final OperationSources sources;
    private volatile Known known = new Known(List.of(), OperationsByPath.of(List.of()), Map.of(), Map.of());

    /**
     * What was found at start.
     *
     * @param attributes those of a request that the DispatcherServlet sets before it looks the handler up
     */
    private record Known(
            List<HandlerMapping> mappings,
            OperationsByPath operations,
            Map<MethodClassKey, HandlerOperation> byHandler,
            Map<String, Object> attributes) {}

    HandlerOperations(ApplicationContext context, OperationSources sources) {
        this.context = context;
        this.sources = sources;
    }

    List<HandlerOperation> all() {
        return known.operations.all();
    }

    // ---- at start

    /** Finds the handlers. Returns every mapped method. */
    Set<MethodClassKey> find(List<OperationFault> faults) {
        List<HandlerMapping> mappings = new ArrayList<>(
                BeanFactoryUtils.beansOfTypeIncludingAncestors(context, HandlerMapping.class, true, false)
                        .values());
        AnnotationAwareOrderComparator.sort(mappings);
        List<HandlerOperation> operations = new ArrayList<>();
        Map<MethodClassKey, HandlerOperation> byHandler = new HashMap<>();
        Set<MethodClassKey> mapped = new HashSet<>();
        FilterCoverage coverage = new FilterCoverage(context);
        for (RequestMappingInfoHandlerMapping infos : ofMethods(mappings)) {
            infos.getHandlerMethods().forEach((info, handler) -> {
                mapped.add(key(handler));
                HandlerOperation operation = operation(info, handler, coverage, faults);
                if (operation != null) {
                    operations.add(operation);
                    byHandler.put(key(handler), operation);
                }
            });
        }
        known = new Known(List.copyOf(mappings), OperationsByPath.of(operations), Map.copyOf(byHandler), attributes());
        coverage.warnOfDisabled();
        RequestSettings.choose(servletContext(), this::settings);
        return mapped;
    }

    /** The mappings to methods. A mapping may delegate to several, as that of Spring Data REST does. */
    private static List<RequestMappingInfoHandlerMapping> ofMethods(List<HandlerMapping> mappings) {
        List<RequestMappingInfoHandlerMapping> found = new ArrayList<>();
        for (HandlerMapping mapping : mappings) {
            for (Object one : mapping instanceof Iterable<?> delegates ? delegates : List.of(mapping)) {
                if (one instanceof RequestMappingInfoHandlerMapping infos) {
                    found.add(infos);
                }
            }
        }
        return found;
    }

    private Map<String, Object> attributes() {
        Map<String, Object> attributes = new HashMap<>();
        attributes.put(DispatcherServlet.WEB_APPLICATION_CONTEXT_ATTRIBUTE, context);
        if (context.containsBean(DispatcherServlet.LOCALE_RESOLVER_BEAN_NAME)) {
            attributes.put(
                    DispatcherServlet.LOCALE_RESOLVER_ATTRIBUTE,
                    context.getBean(DispatcherServlet.LOCALE_RESOLVER_BEAN_NAME));
        }
        return Map.copyOf(attributes);
    }

    private ServletContext servletContext() {
        return Objects.requireNonNull(((WebApplicationContext) context).getServletContext());
    }

    private static MethodClassKey key(HandlerMethod handler) {
        return new MethodClassKey(handler.getMethod(), handler.getBeanType());
    }

    private @Nullable HandlerOperation operation(
            RequestMappingInfo mapping, HandlerMethod handler, FilterCoverage coverage, List<OperationFault> faults) {
        IdempotentAnnotations.Found found = IdempotentAnnotations.of(handler.getMethod(), handler.getBeanType());
        if (found == null) {
            return null;
        }
        Set<RequestMethod> methods = mapping.getMethodsCondition().getMethods();
        boolean isSafe = !methods.isEmpty() && Collections.disjoint(methods, FilterCoverage.UNSAFE);
        if (isSafe && !found.onMethod()) {
            return null;
        }
        OperationFaults here = sources.faultsAt(handler.getBeanType(), handler.getMethod(), faults);
        int before = faults.size();
        OperationSettings settings = OperationSettings.of(found.annotation(), here);
        List<FilterCoverage.Configured> configured = List.of();
        if (settings.isIdempotent()) {
            check(mapping, handler, found.annotation(), isSafe, here);
            configured = coverage.check(HandlerOperation.name(handler), mapping, here);
        }
        HandlerOperation operation = new HandlerOperation(mapping, handler, settings, sources.recovery(), configured);
        if (settings.isIdempotent() && !settings.lacksRecovery(sources.recovery(), here)) {
            checkSettings(operation, configured, here);
        }
        return faults.size() == before ? operation : null;
    }

    private static void check(
            RequestMappingInfo mapping,
            HandlerMethod handler,
            Idempotent annotation,
            boolean isSafe,
            OperationFaults faults) {
        if (isSafe) {
            faults.add(
                    "it handles only " + joined(mapping.getMethodsCondition().getMethods())
                            + ", which is never protected",
                    "Remove @Idempotent, or map the method to POST, PUT, PATCH or DELETE.");
        }
        if (!annotation.id().isEmpty() || !annotation.operation().isEmpty()) {
            faults.add(
                    "it has an " + (annotation.id().isEmpty() ? "operation" : "id") + ", but requests carry the ID in"
                            + " the header Idempotency-Key",
                    "Remove id and operation from handlers, or move @Idempotent to a method of a service.");
        }
        EventStreams.check(mapping, handler, faults);
    }

    /** Checks that the annotation fits what its filters have, or else what the application configures for all. */
    private void checkSettings(
            HandlerOperation operation, List<FilterCoverage.Configured> configured, OperationFaults faults) {
        String usual = fault(operation, new RequestSettings(true, true, sources.policy(), Duration.ZERO));
        if (usual != null && configured.isEmpty()) {
            faults.add(usual, operation.declared().fix(usual) + ".");
            return;
        }
        for (FilterCoverage.Configured one : configured) {
            String fault = fault(operation, one.settings());
            if (fault != null && fault.equals(usual)) {
                faults.add(fault, operation.declared().fix(fault) + ".");
                return;
            }
            if (fault != null) {
                faults.add(
                        "it does not fit the policy that the filter of '" + one.registration() + "' has for "
                                + one.requests() + ": " + fault,
                        operation.declared().fix(fault) + ", or that policy.");
                return;
            }
        }
    }

    private static @Nullable String fault(HandlerOperation operation, RequestSettings configured) {
        try {
            operation.settings(configured);
            return null;
        } catch (IllegalArgumentException e) {
            return String.valueOf(e.getMessage());
        }
    }

    private static String joined(Set<RequestMethod> methods) {
        return methods.stream().map(Enum::name).sorted().collect(Collectors.joining(" and "));
    }

    // ---- for each request

    private RequestSettings settings(HttpServletRequest request, RequestSettings configured) {
        Known now = known;
        if (now.byHandler.isEmpty()) {
            return configured;
        }
        request.setAttribute(COVERED, true);
        HandlerOperation operation = operation(now, request);
        return operation == null ? configured : operation.settings(configured);
    }

    /**
     * Whether a request is about to run a handler with {@code @Idempotent} although no filter has seen it, or none has seen that it goes to
     * this handler, which requires an ID.
     */
    boolean isUncovered(HttpServletRequest request, Object handler) {
        Map<MethodClassKey, HandlerOperation> byHandler = known.byHandler;
        if (byHandler.isEmpty()) {
            return false;
        }
        HandlerOperation operation = handler instanceof HandlerMethod method ? byHandler.get(key(method)) : null;
        if (operation == null
                || !operation.declared().isIdempotent()
                || !FilterCoverage.isUnsafe(request.getMethod())) {
            return false;
        }
        boolean runsWithoutId = IdempotenceFilter.execution(request).isEmpty();
        return request.getAttribute(COVERED) == null || (operation.declared().required() && runsWithoutId);
    }

    /** The operation of a request. Few handlers have one, so a look-up of the handler is made only where it may be one of them. */
    private static @Nullable HandlerOperation operation(Known known, HttpServletRequest request) {
        UntouchedRequest untouched = new UntouchedRequest(request, known.attributes);
        PathContainer path = ServletRequestPathUtils.parseAndCache(untouched).pathWithinApplication();
        return known.operations.anyMatch(path, candidate -> mayHandle(candidate.mapping(), untouched))
                ? ofHandler(known, untouched)
                : null;
    }

    private static boolean mayHandle(RequestMappingInfo mapping, UntouchedRequest request) {
        PathPatternsRequestCondition paths = mapping.getPathPatternsCondition();
        return mapping.getMethodsCondition().getMatchingCondition(request) != null
                // Without parsed patterns, the application compares strings.
                && (paths == null || paths.getMatchingCondition(request) != null);
    }

    /** Looks the handler up as the DispatcherServlet will. */
    private static @Nullable HandlerOperation ofHandler(Known known, UntouchedRequest request) {
        HandlerOperation found = null;
        Exception failure = null;
        try {
            found = lookUp(known, request);
        } catch (Exception e) {
            failure = e;
        }
        // A condition may swallow or wrap the exception, so the request itself records what was read from it.
        if (request.isBodyWithheld()) {
            return shared(known, request, failure);
        }
        if (request.isFormWithheld()) {
            // The look-up of the DispatcherServlet will have the form parsed, too.
            request.parseForm();
            return ofHandler(known, request);
        }
        return failure == null || isNoMatch(failure) ? found : shared(known, request, failure);
    }

    private static @Nullable HandlerOperation lookUp(Known known, HttpServletRequest request) throws Exception {
        for (HandlerMapping mapping : known.mappings) {
            HandlerExecutionChain chain = mapping.getHandler(request);
            if (chain != null) {
                return chain.getHandler() instanceof HandlerMethod handler ? known.byHandler.get(key(handler)) : null;
            }
        }
        return null;
    }

    /** Whether no handler matches, such as for another media type or API version. The DispatcherServlet will get the same exception. */
    private static boolean isNoMatch(Exception failure) {
        return failure instanceof ErrorResponse
                && (failure instanceof ServletException
                        || failure.getClass().getPackageName().equals(VERSIONS));
    }

    /**
     * The operation of a request whose handler cannot be looked up: any one of those that may handle it, if all have the same settings.
     *
     * @param failure what the look-up threw, if it did. The DispatcherServlet gets it, too, unless it is thrown in filters only
     * @throws IllegalStateException if they differ, so that no handler runs under the settings of another
     */
    private static @Nullable HandlerOperation shared(
            Known known, UntouchedRequest request, @Nullable Exception failure) {
        HandlerOperation any = null;
        Map<Optional<OperationSettings>, String> names = new HashMap<>();
        for (RequestMappingInfoHandlerMapping infos : ofMethods(known.mappings)) {
            for (Map.Entry<RequestMappingInfo, HandlerMethod> mapped :
                    infos.getHandlerMethods().entrySet()) {
                if (mayHandle(mapped.getKey(), request)) {
                    any = known.byHandler.get(key(mapped.getValue()));
                    names.put(
                            Optional.ofNullable(any).map(HandlerOperation::declared),
                            HandlerOperation.name(mapped.getValue()));
                }
            }
        }
        if (names.size() > 1) {
            throw new IllegalStateException(
                    "the handler of a request cannot be looked up before its ID is claimed, because a condition or a mapping "
                            + (failure == null ? "reads the body" : "fails in a filter")
                            + ", and the handlers that may run have different settings: "
                            + names.values().stream().sorted().collect(Collectors.joining(", "))
                            + "; map them to different paths, or give them the same @Idempotent",
                    failure);
        }
        return any;
    }
}
